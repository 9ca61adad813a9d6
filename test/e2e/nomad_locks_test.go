// SPDX-License-Identifier: Apache-2.0

//go:build newer

// Nomad's locks, by which agents elect one of them, are newer than Nomad 1.6.

package e2e

import (
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// The high_availability block of examples/autoscaler.nomad.hcl, with shorter times.
const highAvailability = `
high_availability {
  enabled    = true
  lock_ttl   = "10s"
  lock_delay = "1s"
}
`

// Two agents of which Nomad's lock elects one, with the token of examples/nomad-acl.hcl: it has all
// that they ask for.
func TestNomadsLocksElectOneOfTwoAgentsAndTheOtherTakesOverWhenItDies(t *testing.T) {
	s := harness.Start(t)
	useExampleToken(t, s)
	s.AgentSettings = highAvailability
	active := s.StartAgent(t)
	standby := s.LaunchAgent(t, "other")

	s.Reach(t, 2*time.Minute, 2)
	if lines := standby.PluginLines(t); len(lines) != 0 {
		t.Errorf("the agent that stands by has a plugin, which says %v", lines[0])
	}
	active.KillBoth(t)

	s.Reach(t, 2*time.Minute, 3)
	s.Reach(t, 2*time.Minute, 0)
	standby.StopInOrder(t)
	checkNothingRefused(t, standby)
}
