package completeness

import (
	"context"
	"slices"
	"time"
)

// Volume compares the events of the newest half hour with what is usual.
type Volume struct {
	Hourly int64  `json:"hourly"` // events an hour, of the newest half
	Usual  int64  `json:"usual"`  // 0: not known
	By     string `json:"by,omitempty"`
}

const (
	volumeHistory = 29 * 24 * time.Hour
	volumeSpan    = 30 * time.Minute
	// fewEvents an hour are too few to conclude anything.
	fewEvents = 600
)

// serverDays is for how many earlier days the same half hour of an apiserver is read, and
// enoughDays how many of them must have events.
const (
	serverDays = 7
	enoughDays = 3
)

// volumes looks for apiservers that send less than at the same time of earlier days; if there is
// only one, the cluster's volume covers it.
func (r *Report) volumes(ctx context.Context, store Store, q Question) error {
	if len(r.Servers) < 2 {
		return nil
	}
	end := q.To.Truncate(time.Minute)
	now := map[string]int64{}
	before := map[string][]int64{}
	for day := range serverDays + 1 {
		to := end.AddDate(0, 0, -day)
		list, err := store.ServerVolumes(ctx, q.Cluster, to.Add(-volumeSpan), to)
		if err != nil {
			return err
		}
		for _, v := range list {
			if n := v.Events * int64(time.Hour/volumeSpan); day == 0 {
				now[v.APIServer] = n
			} else {
				before[v.APIServer] = append(before[v.APIServer], n)
			}
		}
	}
	for i := range r.Servers {
		s := &r.Servers[i]
		list := before[s.Name]
		if len(list) < enoughDays {
			continue
		}
		slices.Sort(list)
		v := &Volume{Hourly: now[s.Name], Usual: list[len(list)/2], By: "hour of the day"}
		s.Volume = v
		if v.drops(list[0]) && s.Silent == 0 {
			r.add(Warn, KindVolume, s.Name, "Was it taken out of a load balancer, or a client moved? If not: its log.",
				"%s sends %d events an hour, where %d are usual (by %s) and the minimum was %d.", who(s.Name), v.Hourly, v.Usual, v.By,
				list[0])
		}
	}
	return nil
}

// drops reports whether the newest half hour has far fewer events than usual, and fewer than ever.
func (v *Volume) drops(least int64) bool {
	return v.Usual >= fewEvents && 2*v.Hourly < v.Usual && v.Hourly < least
}

// volume looks for a drop against the usual rate of the cluster: that of the same hour of the
// same weekday, else of the same hour of other days, else of any hour.
func (r *Report) volume(ctx context.Context, store Store, q Question) error {
	end := q.To.Truncate(time.Minute)
	newest, err := store.Volume(ctx, q.Cluster, end.Add(-volumeSpan), end, time.Minute)
	if err != nil {
		return err
	}
	history, err := store.Volume(ctx, q.Cluster, end.Add(-volumeHistory), end.Add(-volumeSpan).Truncate(time.Hour), time.Hour)
	if err != nil {
		return err
	}
	for _, b := range newest {
		r.Volume.Hourly += b.Events * int64(time.Hour/volumeSpan)
	}
	hours := map[time.Time]int64{}
	var first time.Time
	for _, b := range history {
		hours[b.Start.UTC()] += b.Events
		if first.IsZero() || b.Start.Before(first) {
			first = b.Start
		}
	}
	var weekday, daily, any []int64
	now := end.Add(-volumeSpan / 2).UTC()
	for at, n := range hours {
		if at.Equal(first.UTC()) {
			continue // events may have begun within it
		}
		any = append(any, n)
		if at.Hour() != now.Hour() {
			continue
		}
		daily = append(daily, n)
		if at.Weekday() == now.Weekday() {
			weekday = append(weekday, n)
		}
	}
	for _, h := range []struct {
		counts []int64
		least  int
		by     string
	}{{weekday, 2, "weekday and hour"}, {daily, 3, "hour of the day"}, {any, 6, "hour"}} {
		if len(h.counts) >= h.least {
			slices.Sort(h.counts)
			r.Volume.Usual, r.Volume.By = h.counts[len(h.counts)/2], h.by
			if lowest := h.counts[0]; r.Volume.drops(lowest) {
				r.add(Warn, KindVolume, "", "Was an apiserver, a controller or an audit rule taken away? If not: their logs.",
					"%d events an hour, where %d are usual (by %s) and the minimum was %d.", r.Volume.Hourly, r.Volume.Usual, h.by, lowest)
			}
			break
		}
	}
	return nil
}
