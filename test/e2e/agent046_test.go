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
