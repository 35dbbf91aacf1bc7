package stream

import (
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
)

// readHeaders reads what appendHeaders wrote, as a broker's client would.
func readHeaders(t *testing.T, b []byte) []header {
	t.Helper()
	varint := func() int {
		var u uint64
		for shift := 0; ; shift += 7 {
			c := b[0]
			b = b[1:]
			u |= uint64(c&0x7f) << shift
			if c < 0x80 {
				return int(int64(u>>1) ^ -int64(u&1))
			}
		}
	}
	hs := make([]header, varint())
	for i := range hs {
		n := varint()
		hs[i].name, b = string(b[:n]), b[n:]
		n = varint()
		hs[i].value, b = b[:n:n], b[n:]
	}
	if len(b) != 0 {
		t.Fatalf("%d bytes left over", len(b))
	}
	return hs
}

// The bytes of a codec version are on disk in installations: they never change. Version 1 is
// read but written no more.
func TestHeadersGolden(t *testing.T) {
	r := Record{Kind: KindEvent, Cluster: "prod", Source: "webhook", APIServer: "a1", Value: make([]byte, 1000),
		Received: time.UnixMicro(1700000000123456).UTC(), Content: event.Hash128{Hi: 0x0102030405060708, Lo: 0x090a0b0c0d0e0f10}}
	read := func(t *testing.T, golden string, want Record) {
		t.Helper()
		raw, err := hex.DecodeString(golden)
		if err != nil {
			t.Fatal(err)
		}
		got := Record{Value: want.Value}
		newDecoder().record(&got, readHeaders(t, raw))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("decoded\n got %+v\nwant %+v", got, want)
		}
	}
	t.Run("version 1", func(t *testing.T) {
		v1 := r
		v1.Content.Lo = 0
		read(t, "0e"+
			"0276"+"0231"+ // v=1
			"086b696e64"+"0a6576656e74"+ // kind=event
			"0e636c7573746572"+"0870726f64"+ // cluster=prod
			"107265636569766564"+"1000060a2418202240"+ // received
			"0c736f75726365"+"0e776562686f6f6b"+ // source=webhook
			"12617069736572766572"+"046131"+ // apiserver=a1
			"0e636f6e74656e74"+"200102030405060708090a0b0c0d0e0f10", // content
			v1)
	})
	t.Run("version 2", func(t *testing.T) {
		r := r
		r.Bodies = event.Bodies{Request: 5, Response: 300}
		const golden = "04" +
			"0276" + "0232" + // v=2
			"0272" + "58" + "01" + // r: kind=event
			"00060a2418202240" + // received
			"0102030405060708090a0b0c0d0e0f10" + // content
			"0470726f64" + "07776562686f6f6b" + "026131" + // cluster=prod source=webhook apiserver=a1
			"05" + "ac02" // bodies
		if got := hex.EncodeToString(appendHeaders(nil, &r)); got != golden {
			t.Errorf("headers\n got %s\nwant %s", got, golden)
		}
		read(t, golden, r)
	})
}

func TestCodecReadsThisVersionAndTheOneBefore(t *testing.T) {
	r := Record{Kind: KindEvent, Cluster: "c", Received: time.UnixMicro(1).UTC()}
	packed := readHeaders(t, appendHeaders(nil, &r))
	singly := []header{{headerVersion, []byte("1")}, {headerKind, []byte("event")}, {headerCluster, []byte("c")},
		{headerReceived, []byte{0, 0, 0, 0, 0, 0, 0, 1}}}
	payload := packed[1].value
	for _, tc := range []struct {
		name    string
		current int
		written []header
		change  func([]header) []header
		want    error
	}{
		{"same version", 2, packed, nil, nil},
		{"one before", 2, singly, nil, nil},
		{"by the release before", 1, singly, nil, nil},
		{"two before", 3, singly, nil, ErrCodecVersion},
		{"one after", 1, packed, nil, ErrCodecVersion},
		{"two after", 2, packed, set(headerVersion, "4"), ErrCodecVersion},
		{"zero is not a version", 1, singly, set(headerVersion, "0"), ErrCodecVersion},
		{"not a number", 2, packed, set(headerVersion, "x"), ErrMalformed},
		{"no version", 2, packed, drop(headerVersion), ErrMalformed},
		{"no headers", 2, packed, func([]header) []header { return nil }, ErrMalformed},
		{"header of a later minor", 2, packed, set("novel", "x"), nil},
		{"more of a later minor", 2, packed, set(headerRecord, string(payload)+"xyz"), nil},
		{"nothing packed", 2, packed, drop(headerRecord), ErrMalformed},
		{"no kind", 2, packed, set(headerRecord, "\x00"+string(payload[1:])), ErrMalformed},
		{"unknown kind", 2, packed, set(headerRecord, "\x63"+string(payload[1:])), ErrMalformed},
		{"no cluster", 2, packed, set(headerRecord, string(payload[:25])+"\x00"+string(payload[27:])), ErrMalformed},
		{"body longer than the value", 2, packed, set(headerRecord, string(payload[:len(payload)-1])+"\x01"), ErrMalformed},
		{"version 1, unknown kind", 2, singly, set(headerKind, "novel"), ErrMalformed},
		{"version 1, no cluster", 2, singly, drop(headerCluster), ErrMalformed},
		{"version 1, short received", 2, singly, set(headerReceived, "1"), ErrMalformed},
		{"version 1, long content", 2, singly, set(headerContent, strings.Repeat("x", 17)), ErrMalformed},
		{"version 1, header of a later minor", 2, singly, set("novel", "x"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hs := append([]header(nil), tc.written...)
			if tc.change != nil {
				hs = tc.change(hs)
			}
			d := newDecoder()
			d.current = tc.current
			var got Record
			d.record(&got, hs)
			if !errors.Is(got.Err, tc.want) {
				t.Fatalf("error %v, want %v", got.Err, tc.want)
			}
			if tc.want == nil && !reflect.DeepEqual(got, r) {
				t.Errorf("got %+v, want %+v", got, r)
			}
		})
	}
	for n := range payload {
		var got Record
		if newDecoder().record(&got, set(headerRecord, string(payload[:n]))(packed)); !errors.Is(got.Err, ErrMalformed) {
			t.Errorf("the first %d of %d bytes: %v, want %v", n, len(payload), got.Err, ErrMalformed)
		}
	}
}

func set(name, value string) func([]header) []header {
	return func(hs []header) []header { return append(drop(name)(hs), header{name, []byte(value)}) }
}

func drop(name string) func([]header) []header {
	return func(hs []header) (out []header) {
		for _, h := range hs {
			if h.name != name {
				out = append(out, h)
			}
		}
		return out
	}
}

func TestRecordSizeBoundsWhatIsSent(t *testing.T) {
	for _, r := range []Record{
		{},
		rec("k", "v"),
		{Key: make([]byte, 16), Value: make([]byte, 70000), Kind: KindPolicyEvent, Cluster: strings.Repeat("c", 200),
			Source: strings.Repeat("s", 100), APIServer: strings.Repeat("a", 130), Content: event.Hash128{Hi: 1}},
	} {
		var b batch
		b.reset()
		empty := b.size()
		b.append(&r, 1<<40)
		if got, bound := b.size()-empty, RecordSize(&r); got > bound || bound > got+160 {
			t.Errorf("record takes %d bytes, RecordSize says %d", got, bound)
		}
	}
}

func TestDeadLetterRecord(t *testing.T) {
	at := time.UnixMicro(1700000000123456).UTC()
	d := event.DeadLetter{Cluster: "prod", Source: "webhook", Reason: "malformed-item", Detail: "offset 3", Digest: "sha256:ab",
		Size: 1 << 40, Prefix: []byte{0, 1, 255}}
	r := DeadLetterRecord(d, at)
	if r.Topic != TopicDeadLetter || r.Kind != KindDeadLetter || string(r.Key) != d.Digest {
		t.Errorf("dead letter record %+v", r)
	}
	got, err := DecodeDeadLetter(&r)
	if err != nil || !reflect.DeepEqual(got, d) {
		t.Errorf("dead letter %+v, %v, want %+v", got, err, d)
	}
	if _, err := DecodeDeadLetter(&Record{Value: []byte("{")}); err == nil {
		t.Error("truncated dead letter was read")
	}
}

// Records of one request, and of one cluster's policy, must meet in one partition whatever
// version sent them: this table never changes.
func TestPartitionOfGolden(t *testing.T) {
	for _, tc := range []struct {
		key  string
		n    int
		want int32
	}{
		{"", 1, 0}, {"", 4, 1}, {"prod", 4, 0}, {"prod", 1, 0}, {"prod", 0, 0}, {"prod", 7, 6},
		{"staging", 4, 0}, {"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f", 4, 3},
		{"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f", 64, 55},
	} {
		if got := PartitionOf([]byte(tc.key), tc.n); got != tc.want {
			t.Errorf("PartitionOf(%q, %d) = %d, want %d", tc.key, tc.n, got, tc.want)
		}
	}
}
