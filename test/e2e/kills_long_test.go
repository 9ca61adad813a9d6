// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"math/rand"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// Four VMs are replaced one after the other, while one of four programs is killed and restarted, ten times in all (rules
// R1, R3 and C10).
func TestARollOutReplacesEachVMOnceWhateverIsKilledMeanwhile(t *testing.T) {
	const vms, kills = 4, 10
	s := harness.StartAlone(t)
	s.PolicyKeys = map[string]string{"replace_drifted": "rolling"}
	agent := s.StartAgent(t)
	s.Reach(t, 3*time.Minute, vms)
	serve(t, s, vms)
	agent.StopInOrder(t)
	agent = s.StartAgent(t)
	first := agent // those after it continue its log
	departures := watchDepartures(s)
	departures.serviceMayPause = true // Nomad's server is killed while it starts what takes an allocation's place
	roll := askToReplaceAll(t, s)
	// A Nomad server that was down takes a client for down that it has not heard from yet. One that the plugin takes
	// away is not eligible, and departures knows if it was not drained.
	roll.present = append(roll.present, "down")
	random := rand.New(rand.NewSource(1))
	for _, n := range random.Perm(kills) {
		roll.lookFor(time.Duration(random.Int63n(int64(20 * time.Second))))
		old := roll.left()
		switch n % 4 {
		case 0:
			t.Logf("%d old VMs are left: the plugin is killed", old)
			agent.KillBoth(t) // an agent does not start a plugin again
			agent = s.StartAgent(t)
		case 1:
			t.Logf("%d old VMs are left: the agent is killed", old)
			agent.KillAgent(t)
			agent = s.StartAgent(t)
		case 2:
			t.Logf("%d old VMs are left: the API server is killed", old)
			s.APIServer.Restart(t)
		case 3:
			t.Logf("%d old VMs are left: Nomad's server is killed", old)
			s.NomadServer.Restart(t)
		}
	}
	harness.Eventually(t, 6*time.Minute, "all are replaced", roll.isOver)
	s.AwaitSettled(t, 2*time.Minute, vms)
	roll.check(t)
	departures.check(t, vms)
	checkCountsSeen(t, first, vms)
	awaitRuns(t, s, "web", vms)
}
