// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"nomad-harvester.local/test/e2e/harness"
)

// docs/operations.md, "What to scale on": of a job for which no node is eligible Nomad says how many
// allocations are queued, and neither class nor resources
// (hashicorp/nomad:nomad/blocked_evals_stats.go, generateResourceStats).
func TestNomadsBlockedEvaluationsTellNothingOfAnEmptyPool(t *testing.T) {
	s := harness.StartNomad(t, harness.NomadOptions{})
	crunch := job("crunch", "batch", harness.Object{
		"Count":       3,
		"Constraints": []harness.Object{{"LTarget": "${node.class}", "RTarget": "batch", "Operand": "="}},
		"Tasks":       []harness.Object{task("crunch", harness.Object{"run_for": "24h"})},
	})
	must1(s.Nomad.Do(http.MethodPut, "/v1/jobs", harness.Object{"Job": crunch}))(t)
	const job = `job="crunch",namespace="default"`
	wanted := []string{
		`nomad_nomad_blocked_evals_total_blocked{HOST} 1`,
		`nomad_nomad_blocked_evals_job_cpu{HOST,` + job + `} 0`,
		`nomad_nomad_blocked_evals_job_memory{HOST,` + job + `} 0`,
		`nomad_nomad_job_summary_queued{HOST,` + job + `,task_group="group"} 3`,
	}
	harness.Eventually(t, 30*time.Second, "Nomad exposes what is blocked", func() error {
		exposed, err := s.Nomad.Metrics()
		if err != nil {
			return err
		}
		for _, line := range wanted {
			name, rest, _ := strings.Cut(line, "{HOST")
			if !hasSeries(exposed, name, rest) {
				return fmt.Errorf("no line %s", line)
			}
		}
		if strings.Contains(exposed, "blocked_evals_cpu") || strings.Contains(exposed, "blocked_evals_memory") {
			return fmt.Errorf("there are series of a class: the document is wrong:\n%s", exposed)
		}
		return nil
	})
}

// hasSeries: whatever the label host says.
func hasSeries(exposed, name, rest string) bool {
	for line := range strings.Lines(exposed) {
		if strings.HasPrefix(line, name+"{host=") && strings.HasSuffix(strings.TrimSpace(line), rest) {
			return true
		}
	}
	return false
}
