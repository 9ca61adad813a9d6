// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"testing"

	"nomad-harvester.local/test/e2e/harness"
)

// The release before the pinned one treats ABORTED like any other error.
func TestAPoolGrowsAndShrinksUnderAgent046(t *testing.T) {
	s := harness.Start(t)
	s.AgentPart = "agent046"
	growAndShrink(t, s)
}

func TestC16_eleven_pools_leave_agent046_a_slot_for_the_twelfth(t *testing.T) {
	checkSlots(t, "agent046")
}

func TestS4_agent046_counts_its_cooldown_from_the_last_event(t *testing.T) {
	checkCooldown(t, "agent046", true)
}
