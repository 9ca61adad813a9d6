// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"testing"
	"time"
)

const pollInterval = 100 * time.Millisecond

// Eventually waits until check returns nil; after limit it fails the test with
// the last error.
func Eventually(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	if err := poll(limit, check); err != nil {
		t.Fatalf("%s: not within %v: %v", what, limit, err)
	}
}

func poll(limit time.Duration, check func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(pollInterval)
	}
}

func must[T any](t testing.TB, what string) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return value
	}
}

func check(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func expect[T comparable](what string, is, want T) error {
	if is != want {
		return fmt.Errorf("%s is %v, want %v", what, is, want)
	}
	return nil
}
