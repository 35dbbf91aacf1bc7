package main

import (
	"context"
	"time"

	"github.com/retrial-io/retrial/storage"
)

// fakeDoctor is the part of the fake store that the doctor asks.
type fakeDoctor struct {
	shares  []storage.Share
	traits  storage.LogTraits
	letters []storage.Letters
	disk    int64
}

func (f fakeDoctor) Outcomes(context.Context, string, time.Time, time.Time) ([]storage.Share, error) {
	return f.shares, nil
}

func (f fakeDoctor) LogTraits(context.Context, string, time.Time, time.Time) (storage.LogTraits, error) {
	return f.traits, nil
}

func (f fakeDoctor) DeadLetters(context.Context, time.Time) ([]storage.Letters, error) {
	return f.letters, nil
}

func (f fakeDoctor) DiskBytes(context.Context) (int64, error) { return f.disk, nil }
