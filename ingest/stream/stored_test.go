package stream

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
)

func storedRecords() []Record {
	return []Record{
		{Topic: TopicEvents, Key: []byte("0123456789abcdef"), Value: []byte(`{"auditID":"a"}`), Kind: KindEvent, Cluster: "prod",
			Source:    "webhook",
			APIServer: "a1", Received: time.UnixMicro(1700000000123456).UTC(), Content: event.Hash128{Hi: 1, Lo: 2}},
		{Topic: TopicPolicy, Key: []byte("prod"), Value: []byte{}, Kind: KindObservation, Cluster: "prod", Source: "watch",
			Received: time.UnixMicro(0).UTC()},
		{Topic: TopicDeadLetter, Key: []byte{}, Value: bytes.Repeat([]byte{0, 255, '"'}, 1000), Kind: KindDeadLetter,
			Received: time.UnixMicro(-1).UTC()},
	}
}

func TestStoredRecords(t *testing.T) {
	want := storedRecords()
	var b []byte
	for i := range want {
		b = AppendRecord(b, &want[i])
	}
	d := NewDecoder()
	for i := range want {
		var got Record
		var err error
		if got, b, err = d.Next(b); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("record %d\n got %+v\nwant %+v", i, got, want[i])
		}
	}
	if len(b) != 0 {
		t.Errorf("%d bytes left over", len(b))
	}
}

func TestStoredRecordsThatAreNone(t *testing.T) {
	r := storedRecords()[0]
	whole := AppendRecord(nil, &r)
	newer := bytes.Replace(whole, []byte("\x02v\x022"), []byte("\x02v\x029"), 1)
	other := bytes.Replace(whole, []byte(TopicEvents), []byte("audit.xxxxxx"), 1)
	for name, tc := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":       {nil, ErrMalformed},
		"newer version": {newer, ErrCodecVersion},
		"unknown topic": {other, ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := NewDecoder().Next(tc.b); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
	for n := range whole {
		if _, _, err := NewDecoder().Next(whole[:n]); err == nil {
			t.Errorf("the first %d of %d bytes were taken for a record", n, len(whole))
		}
	}
}
