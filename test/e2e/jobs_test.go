// SPDX-License-Identifier: Apache-2.0

package e2e

import "nomad-harvester.local/test/e2e/harness"

// The jobs use Nomad's mock driver: tasks that take time and can be stopped,
// without processes (hashicorp/nomad:drivers/mock/driver.go).

func job(id, kind string, group harness.Object) harness.Object {
	group["Name"] = "group"
	return harness.Object{
		"ID": id, "Name": id, "Type": kind, "Datacenters": []string{"dc1"},
		"TaskGroups": []harness.Object{group},
	}
}

func task(name string, config harness.Object) harness.Object {
	return harness.Object{
		"Name": name, "Driver": "mock_driver", "Config": config,
		"Resources":   harness.Object{"CPU": 20, "MemoryMB": 20},
		"KillTimeout": int64(10e9),
	}
}

// serviceJob has one allocation on each of three nodes, if there are three.
func serviceJob() harness.Object {
	return job("web", "service", harness.Object{
		"Count":   3,
		"Spreads": []harness.Object{{"Attribute": "${node.unique.id}", "Weight": 100}},
		"Migrate": harness.Object{
			"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": int64(1e9), "HealthyDeadline": int64(60e9),
		},
		"Tasks": []harness.Object{task("web", harness.Object{"run_for": "24h"})},
	})
}

func systemJob() harness.Object {
	return job("monitor", "system", harness.Object{
		"Tasks": []harness.Object{task("monitor", harness.Object{"run_for": "24h"})},
	})
}

// batchJob runs past any drain deadline, and its poststop task runs for a while
// after it was stopped: Nomad considers such an allocation terminal before that
// task has ended.
func batchJob() harness.Object {
	cleanup := task("cleanup", harness.Object{"run_for": "4s"})
	cleanup["Lifecycle"] = harness.Object{"Hook": "poststop", "Sidecar": false}
	return job("crunch", "batch", harness.Object{
		"Count":            3,
		"Spreads":          []harness.Object{{"Attribute": "${node.unique.id}", "Weight": 100}},
		"ReschedulePolicy": harness.Object{"Attempts": 0, "Unlimited": false},
		"Tasks":            []harness.Object{task("crunch", harness.Object{"run_for": "24h"}), cleanup},
	})
}
