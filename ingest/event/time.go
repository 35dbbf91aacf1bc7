package event

import "time"

// parseTime parses an RFC 3339 time, up to nine fraction digits, any offset, cut to microseconds, in UTC. The apiserver writes six, and Z.
func parseTime(s string) (time.Time, bool) {
	if len(s) < len("2006-01-02T15:04:05Z") || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return time.Time{}, false
	}
	year := digits2(s, 0)*100 + digits2(s, 2)
	month, day := digits2(s, 5), digits2(s, 8)
	hour, minute, sec := digits2(s, 11), digits2(s, 14), digits2(s, 17)
	if year < 0 || month < 1 || month > 12 || day < 1 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || sec < 0 || sec > 59 {
		return time.Time{}, false
	}
	if day > 28 && day > daysIn(year, month) {
		return time.Time{}, false
	}
	i := 19
	nano := 0
	if s[i] == '.' {
		i++
		unit := 100_000_000
		for ; i < len(s) && s[i]-'0' <= 9; i++ {
			nano += int(s[i]-'0') * unit
			unit /= 10
		}
		if i == 20 || i > 29 {
			return time.Time{}, false
		}
	}
	offset := 0
	switch rest := s[i:]; {
	case rest == "Z":
	case len(rest) == 6 && (rest[0] == '+' || rest[0] == '-') && rest[3] == ':':
		h, m := digits2(rest, 1), digits2(rest, 4)
		if h < 0 || h > 23 || m < 0 || m > 59 {
			return time.Time{}, false
		}
		offset = (h*60 + m) * 60
		if rest[0] == '-' {
			offset = -offset
		}
	default:
		return time.Time{}, false
	}
	unix := daysFromEpoch(year, month, day)*86400 + int64(hour*3600+minute*60+sec-offset)
	if unix < minUnix || unix > maxUnix {
		return time.Time{}, false // the offset leads out of the years 0000 to 9999
	}
	return time.Unix(unix, int64(nano/1000*1000)).UTC(), true
}

// The seconds of the first and the last instant of the years 0000 to 9999.
const (
	minUnix = -62167219200
	maxUnix = 253402300799
)

// digits2 returns the number of two digits, a large negative number if they are not digits.
func digits2(s string, i int) int {
	a, b := s[i]-'0', s[i+1]-'0'
	if a > 9 || b > 9 {
		return -1 << 20
	}
	return int(a)*10 + int(b)
}

// daysIn returns the length of a month of the Gregorian calendar.
func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// daysFromEpoch counts the days from 1970-01-01 to a date, with years that begin in March
// so that the leap day is the last.
func daysFromEpoch(year, month, day int) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	era := year / 400
	if year < 0 {
		era = -1
	}
	of := year - era*400
	n := of*365 + of/4 - of/100 + (153*(month-3)+2)/5 + day - 1
	return int64(era)*146097 + int64(n) - 719468
}

// appendTime appends a timestamp as the apiserver writes it, without quotes.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, sec := t.Clock()
	dst = append2(dst, year/100)
	dst = append2(dst, year%100)
	dst = append(dst, '-')
	dst = append2(dst, int(month))
	dst = append(dst, '-')
	dst = append2(dst, day)
	dst = append(dst, 'T')
	dst = append2(dst, hour)
	dst = append(dst, ':')
	dst = append2(dst, minute)
	dst = append(dst, ':')
	dst = append2(dst, sec)
	dst = append(dst, '.')
	micro := t.Nanosecond() / 1000
	dst = append2(dst, micro/10000)
	dst = append2(dst, micro/100%100)
	dst = append2(dst, micro%100)
	return append(dst, 'Z')
}

// append2 appends two decimal digits.
func append2(dst []byte, n int) []byte {
	return append(dst, byte('0'+n/10%10), byte('0'+n%10))
}
