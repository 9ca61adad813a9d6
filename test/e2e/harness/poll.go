// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

const pollInterval = 100 * time.Millisecond

// Eventually waits until check returns nil; after limit it fails the test with
// the last error.
func Eventually(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	if err := poll(limit, check); err != nil {
		t.Fatalf("%s: not within %v: %v", what, limit*slow, err)
	}
}

// slow is how many times longer everything may take, for a machine that has much else to do.
var slow = func() time.Duration {
	if n, err := strconv.Atoi(os.Getenv("NOMAD_HARVESTER_E2E_SLOW")); err == nil && n > 1 {
		return time.Duration(n)
	}
	return 1
}()

func poll(limit time.Duration, check func() error) error {
	deadline := time.Now().Add(limit * slow)
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
