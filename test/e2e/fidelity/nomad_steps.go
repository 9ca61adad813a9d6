// SPDX-License-Identifier: Apache-2.0

package fidelity

const (
	nobody = "/v1/node/00000000-0000-0000-0000-000000000000"
	node   = "/v1/node/{{.node}}"

	ours = `"Meta":{"drained_by":"nomad-autoscaler","action":"a1"}`
)

// drainFields are what the plugin reads of a node's drain.
var drainFields = []string{
	"/Drain", "/SchedulingEligibility", "/Status", "/LastDrain/Status", "/LastDrain/Meta", "/DrainStrategy/Deadline", "/DrainStrategy/IgnoreSystemJobs",
}

var drainShapes = []string{
	"/LastDrain", "/LastDrain/StartedAt", "/LastDrain/UpdatedAt", "/DrainStrategy", "/DrainStrategy/ForceDeadline", "/DrainStrategy/StartedAt",
}

// nodes is how a node that a VM became looks, and what Nomad refuses.
var nodes = []Step{
	{Name: "a node that is not there", API: Nomad, Method: "GET", Path: nobody},
	{Name: "allocations of a node that is not there", API: Nomad, Method: "GET", Path: nobody + "/allocations", Exact: []string{""}},
	{Name: "drain a node that is not there", API: Nomad, Method: "PUT", Path: nobody + "/drain", Body: `{"DrainSpec":{"Deadline":1000000000},` + ours + `}`},
	{Name: "enable a node that is not there", API: Nomad, Method: "PUT", Path: nobody + "/eligibility", Body: `{"Eligibility":"eligible"}`},
	{Name: "purge a node that is not there", API: Nomad, Method: "PUT", Path: nobody + "/purge"},
	{Name: "an allocation that is not there", API: Nomad, Method: "GET", Path: "/v1/allocation/00000000-0000-0000-0000-000000000000"},
	{Name: "a path that is not there", API: Nomad, Method: "GET", Path: "/v1/nosuchthing"},
	{Name: "a region that is not there", API: Nomad, Method: "GET", Path: "/v1/nodes?region=nowhere"},
	{Name: "an index that is not a number", API: Nomad, Method: "GET", Path: "/v1/nodes?index=x"},
	{Name: "a wait that is no duration", API: Nomad, Method: "GET", Path: "/v1/nodes?index=1&wait=x"},
	{Name: "nodes without a token", API: Nomad, Method: "GET", Path: "/v1/nodes", Token: "none", Needs: knowsRights},
	{Name: "nodes with a token that nobody gave out", API: Nomad, Method: "GET", Path: "/v1/nodes", Token: "00000000-0000-0000-0000-000000000000", Needs: knowsRights},
	{
		Name: "its keys, which need no token", API: Nomad, Method: "GET", Path: "/.well-known/jwks.json", Token: "none",
		Exact: []string{"/keys/0/use", "/keys/0/kty", "/keys/0/alg", "/keys/1"}, Shape: []string{"/keys/0/kid"},
	},
	{Name: "who leads", API: Nomad, Method: "GET", Path: "/v1/status/leader", Shape: []string{""}},
	{
		Name: "the VM's node is ready", API: Nomad, Method: "GET", Path: "/v1/nodes?filter=Name%3D%3D%22{{.name}}%22",
		Until: map[string]any{"/0/Status": "ready"}, Keep: map[string]string{"node": "/0/ID"},
		Exact: []string{
			"/0/Name", "/0/Status", "/0/SchedulingEligibility", "/0/Drain", "/0/NodeClass", "/0/NodePool", "/0/Datacenter", "/0/Attributes", "/0/LastDrain", "/1",
		},
		Shape: []string{"/0/ID", "/0/Address", "/0/CreateIndex", "/0/ModifyIndex", "/0/Meta", "/0/NodeResources"},
	},
	{
		Name: "nodes with resources", API: Nomad, Method: "GET", Path: "/v1/nodes?resources=true&filter=Name%3D%3D%22{{.name}}%22",
		Shape: []string{"/0/NodeResources/Cpu/CpuShares", "/0/NodeResources/Memory/MemoryMB", "/0/ReservedResources", "/0/ReservedResources/Cpu/CpuShares"},
	},
	{
		Name: "the first node", API: Nomad, Method: "GET", Path: "/v1/nodes?per_page=1", KeepHeader: "X-Nomad-Index",
		Shape: []string{"/0/ID", "/0/CreateIndex", "/0/ModifyIndex", "/1"},
	},
	{
		Name: "the whole list has its index", API: Nomad, Method: "GET", Path: "/v1/nodes", SameHeader: "X-Nomad-Index",
		Shape: []string{"/0/ID"},
	},
	{
		Name: "the node in full", API: Nomad, Method: "GET", Path: node,
		Exact: append([]string{"/Name", "/Meta/harvester_vm_uuid", "/Attributes/unique.hostname", "/NodeClass", "/NodePool", "/Datacenter"}, drainFields...),
		Shape: append([]string{"/ID", "/CreateIndex", "/ModifyIndex", "/HTTPAddr", "/StatusUpdatedAt", "/Attributes/unique.host_id", "/SecretID"}, drainShapes...),
	},
	{Name: "an idle node's allocations", API: Nomad, Method: "GET", Path: node + "/allocations", Exact: []string{""}},
	{Name: "no allocations anywhere", API: Nomad, Method: "GET", Path: "/v1/allocations?namespace=*", Exact: []string{""}},
	{Name: "drain without a body", API: Nomad, Method: "PUT", Path: node + "/drain"},
	{Name: "drain by GET", API: Nomad, Method: "GET", Path: node + "/drain"},
	{Name: "purge by GET", API: Nomad, Method: "GET", Path: node + "/purge"},
	{Name: "an eligibility that is none", API: Nomad, Method: "PUT", Path: node + "/eligibility", Body: `{"NodeID":"{{.node}}","Eligibility":"maybe"}`},
	{
		Name: "enable a node that is eligible", API: Nomad, Method: "PUT", Path: node + "/eligibility", Body: `{"NodeID":"{{.node}}","Eligibility":"eligible"}`,
		Shape: []string{"/NodeModifyIndex", "/EvalIDs", "/EvalCreateIndex", "/Index"},
	},
	{Name: "a question that waits", API: Nomad, Method: "GET", Path: node + "?index=1000000&wait=3s", Timed: true, Shape: []string{"/ID"}},
	{Name: "a question that need not wait", API: Nomad, Method: "GET", Path: node + "?index=1&wait=30s", Timed: true, Shape: []string{"/ID"}},
}

// idleDrain is the drain of a node that nothing runs on.
var idleDrain = []Step{
	{
		Name: "drain an idle node", API: Nomad, Method: "PUT", Path: node + "/drain",
		Body:  `{"NodeID":"{{.node}}","DrainSpec":{"Deadline":3600000000000,"IgnoreSystemJobs":false},"MarkEligible":false,` + ours + `}`,
		Shape: []string{"/NodeModifyIndex", "/EvalIDs", "/EvalCreateIndex", "/Index"},
	},
	{
		Name: "an idle node's drain is complete", API: Nomad, Method: "GET", Path: node, Until: map[string]any{"/LastDrain/Status": "complete"},
		Exact: drainFields, Shape: drainShapes,
	},
	{
		Name: "the list tells of the drain", API: Nomad, Method: "GET", Path: "/v1/nodes?filter=Name%3D%3D%22{{.name}}%22",
		Exact: []string{"/0/Drain", "/0/SchedulingEligibility", "/0/LastDrain/Status", "/0/LastDrain/Meta"}, Shape: []string{"/0/LastDrain/StartedAt", "/0/LastDrain/UpdatedAt"},
	},
	{
		Name: "enable a drained node", API: Nomad, Method: "PUT", Path: node + "/eligibility", Body: `{"NodeID":"{{.node}}","Eligibility":"eligible"}`,
		Shape: []string{"/NodeModifyIndex", "/EvalIDs", "/EvalCreateIndex", "/Index"},
	},
	{Name: "enabling leaves the last drain", API: Nomad, Method: "GET", Path: node, Exact: drainFields, Shape: drainShapes},
	{
		Name: "disable it", API: Nomad, Method: "PUT", Path: node + "/eligibility", Body: `{"NodeID":"{{.node}}","Eligibility":"ineligible"}`,
		Shape: []string{"/NodeModifyIndex", "/EvalIDs", "/EvalCreateIndex", "/Index"},
	},
	{
		Name: "cancel a drain that is not", API: Nomad, Method: "PUT", Path: node + "/drain", Body: `{"NodeID":"{{.node}}","DrainSpec":null,"MarkEligible":true,"Meta":{"other":"1"}}`,
		Shape: []string{"/NodeModifyIndex", "/EvalIDs", "/EvalCreateIndex", "/Index"},
	},
	{Name: "cancelling nothing makes eligible and leaves the last drain", API: Nomad, Method: "GET", Path: node, Exact: drainFields, Shape: drainShapes},
}

// waitingWork is work that no node has room for, or that none may take (rules D1 to D3).
var waitingWork = needing(runsJobs, []Step{
	{Name: "nothing waits", API: Nomad, Method: "GET", Path: blockedEvaluations, Exact: []string{""}},
	{Name: "run a job that is too large", API: Nomad, Method: "PUT", Path: "/v1/jobs", Body: jobOf(`"CPU":1000000,"MemoryMB":64`, ""), Shape: []string{"/EvalID", "/JobModifyIndex"}},
	{
		Name: "it waits for room", API: Nomad, Method: "GET", Path: blockedEvaluations, Until: map[string]any{"/0/JobID": "waiting", "/0/Status": "blocked"},
		Exact: append([]string{"/0/FailedTGAllocs/work/DimensionExhausted"}, waitingFields...), Shape: waitingShapes,
	},
	{
		Name: "the list has what waits", API: Nomad, Method: "GET", Path: "/v1/jobs?namespace=*&filter=Status%20!%3D%20%22dead%22",
		// The summary follows the evaluation.
		Until: map[string]any{"/0/JobSummary/Summary/work/Queued": 3.0},
		Exact: []string{"/0/ID", "/0/Namespace", "/0/Type", "/0/Status", "/0/Stop", "/0/JobSummary/Summary/work/Queued", "/1"}, Shape: []string{"/0/JobModifyIndex"},
	},
	{
		Name: "the job that waits", API: Nomad, Method: "GET", Path: "/v1/job/waiting",
		Exact: []string{
			"/ID", "/Namespace", "/Type", "/Status", "/NodePool", "/Datacenters", "/Stop", "/Priority", "/Constraints", "/TaskGroups/0/Name", "/TaskGroups/0/Count",
			"/TaskGroups/0/Constraints", "/TaskGroups/0/EphemeralDisk/SizeMB", "/TaskGroups/0/Tasks/0/Resources/CPU", "/TaskGroups/0/Tasks/0/Resources/MemoryMB",
		},
	},
	{Name: "stop it", API: Nomad, Method: "DELETE", Path: "/v1/job/waiting?purge=true", Shape: []string{"/EvalID"}},
	{Name: "what is stopped waits for nothing", API: Nomad, Method: "GET", Path: blockedEvaluations, Until: map[string]any{"/0": absent}, Exact: []string{""}},
	{
		Name: "run a job that no node may take", API: Nomad, Method: "PUT", Path: "/v1/jobs",
		Body: jobOf(`"CPU":10,"MemoryMB":10`, `"Constraints":[{"LTarget":"${node.class}","RTarget":"none","Operand":"="}],`), Shape: []string{"/EvalID", "/JobModifyIndex"},
	},
	{
		Name: "it waits for another node", API: Nomad, Method: "GET", Path: blockedEvaluations, Until: map[string]any{"/0/JobID": "waiting", "/0/Status": "blocked"},
		Exact: append([]string{"/0/FailedTGAllocs/work/ConstraintFiltered"}, waitingFields...), Shape: waitingShapes,
	},
	{Name: "stop that, too", API: Nomad, Method: "DELETE", Path: "/v1/job/waiting?purge=true", Shape: []string{"/EvalID"}},
	{Name: "nothing waits any more", API: Nomad, Method: "GET", Path: blockedEvaluations, Until: map[string]any{"/0": absent}, Exact: []string{""}},
})

const blockedEvaluations = "/v1/evaluations?namespace=*&status=blocked"

var waitingFields = []string{
	"/0/Namespace", "/0/JobID", "/0/Type", "/0/Priority", "/0/Status", "/0/StatusDescription", "/0/QuotaLimitReached", "/1",
	"/0/FailedTGAllocs/work/NodesEvaluated", "/0/FailedTGAllocs/work/NodesFiltered", "/0/FailedTGAllocs/work/NodesExhausted", "/0/FailedTGAllocs/work/CoalescedFailures",
}

var waitingShapes = []string{"/0/ID", "/0/JobModifyIndex", "/0/CreateIndex", "/0/ModifyIndex"}

// jobOf is a batch job of three allocations with these resources, and with these constraints.
func jobOf(resources, constraints string) string {
	return `{"Job":{"ID":"waiting","Name":"waiting","Type":"batch","Datacenters":["*"],` + constraints + `"TaskGroups":[{"Name":"work","Count":3,` +
		`"Tasks":[{"Name":"main","Driver":"mock_driver","Config":{"run_for":"1s"},"Resources":{` + resources + `}}]}]}}`
}

// busyDrain is the drain of a node that works: it needs a server that takes jobs.
var busyDrain = needing(runsJobs, []Step{
	{
		Name: "run a job", API: Nomad, Method: "PUT", Path: "/v1/jobs", Body: "{{.job}}", Shape: []string{"/EvalID", "/JobModifyIndex"},
	},
	{
		Name: "its allocation runs", API: Nomad, Method: "GET", Path: node + "/allocations", Until: map[string]any{"/0/ClientStatus": "running"},
		Exact: []string{"/0/ClientStatus", "/0/DesiredStatus", "/0/JobID", "/0/Namespace", "/0/Job/Type", "/0/TaskGroup", "/0/TaskStates/main/State", "/0/TaskStates/cleanup/State", "/0/NodeName"},
		Shape: []string{
			"/0/ID", "/0/NodeID", "/0/CreateIndex", "/0/ModifyIndex", "/0/CreateTime", "/0/Resources/CPU", "/0/Resources/MemoryMB",
			"/0/AllocatedResources/Tasks/main/Cpu/CpuShares", "/0/AllocatedResources/Tasks/main/Memory/MemoryMB", "/0/TaskStates/main/StartedAt", "/0/TaskStates/main/FinishedAt",
			"/0/TaskStates/cleanup/StartedAt", "/0/TaskStates/cleanup/FinishedAt",
		},
	},
	{
		Name: "the list of all allocations", API: Nomad, Method: "GET", Path: "/v1/allocations?namespace=*",
		Exact: []string{"/0/ClientStatus", "/0/JobType", "/0/NodeName", "/0/TaskStates/main/State"}, Shape: []string{"/0/ID", "/0/NodeID", "/0/ModifyIndex", "/0/Job", "/0/AllocatedResources"},
	},
	{
		Name: "drain a busy node", API: Nomad, Method: "PUT", Path: node + "/drain",
		Body:  `{"NodeID":"{{.node}}","DrainSpec":{"Deadline":3600000000000,"IgnoreSystemJobs":true},"MarkEligible":false,"Meta":{"drained_by":"nomad-autoscaler","action":"a2"}}`,
		Shape: []string{"/NodeModifyIndex", "/EvalIDs", "/EvalCreateIndex", "/Index"},
	},
	{
		Name: "a busy node drains", API: Nomad, Method: "GET", Path: node, Exact: drainFields, Shape: drainShapes,
		Keep: map[string]string{"startedAt": "/DrainStrategy/StartedAt", "forceDeadline": "/DrainStrategy/ForceDeadline"},
	},
	{Name: "enable a draining node", API: Nomad, Method: "PUT", Path: node + "/eligibility", Body: `{"NodeID":"{{.node}}","Eligibility":"eligible"}`},
	{
		Name: "drain it again without meta", API: Nomad, Method: "PUT", Path: node + "/drain",
		Body:  `{"NodeID":"{{.node}}","DrainSpec":{"Deadline":1800000000000,"IgnoreSystemJobs":false},"MarkEligible":false}`,
		Shape: []string{"/NodeModifyIndex"},
	},
	{Name: "without meta the old one stays", API: Nomad, Method: "GET", Path: node, Exact: drainFields, Shape: drainShapes},
	{
		Name: "drain it again with meta", API: Nomad, Method: "PUT", Path: node + "/drain",
		Body:  `{"NodeID":"{{.node}}","DrainSpec":{"Deadline":1800000000000,"IgnoreSystemJobs":false},"MarkEligible":false,"Meta":{"by":"operator"}}`,
		Shape: []string{"/NodeModifyIndex"},
	},
	{Name: "with meta the old one goes", API: Nomad, Method: "GET", Path: node, Exact: drainFields, Shape: drainShapes},
	{
		Name: "cancel the drain", API: Nomad, Method: "PUT", Path: node + "/drain", Body: `{"NodeID":"{{.node}}","DrainSpec":null,"MarkEligible":false}`,
		Shape: []string{"/NodeModifyIndex", "/EvalIDs"},
	},
	{Name: "a cancelled drain", API: Nomad, Method: "GET", Path: node, Exact: drainFields, Shape: drainShapes},
	{
		Name: "drain a busy node at once", API: Nomad, Method: "PUT", Path: node + "/drain",
		Body:  `{"NodeID":"{{.node}}","DrainSpec":{"Deadline":-1,"IgnoreSystemJobs":false},"MarkEligible":false,"Meta":{"drained_by":"nomad-autoscaler","action":"a3"}}`,
		Shape: []string{"/NodeModifyIndex", "/EvalIDs"},
	},
	{
		Name: "a drain at once is complete", API: Nomad, Method: "GET", Path: node, Until: map[string]any{"/LastDrain/Status": "complete"},
		Exact: drainFields, Shape: drainShapes,
	},
	{
		Name: "an allocation whose clean-up runs", API: Nomad, Method: "GET", Path: node + "/allocations",
		Until: map[string]any{"/0/TaskStates/cleanup/State": "running"},
		Exact: []string{"/0/ClientStatus", "/0/DesiredStatus", "/0/TaskStates/main/State", "/0/TaskStates/cleanup/State"},
	},
	{
		Name: "its clean-up ends", API: Nomad, Method: "GET", Path: node + "/allocations",
		Until: map[string]any{"/0/TaskStates/cleanup/State": "dead"},
		Exact: []string{"/0/ClientStatus", "/0/TaskStates/main/State", "/0/TaskStates/cleanup/State", "/0/TaskStates/cleanup/Failed"},
		Shape: []string{"/0/TaskStates/cleanup/FinishedAt"},
	},
	{Name: "stop the job", API: Nomad, Method: "DELETE", Path: "/v1/job/probe?purge=true", Shape: []string{"/EvalID"}},
})

// afterRemoval is the node of a VM that is gone.
var afterRemoval = []Step{
	{
		Name: "the node of a VM that is gone is down", API: Nomad, Method: "GET", Path: node, Until: map[string]any{"/Status": "down"},
		Exact: []string{"/Status", "/Drain", "/SchedulingEligibility"}, Shape: []string{"/StatusUpdatedAt", "/LastDrain"},
	},
	{
		Name: "purge it", API: Nomad, Method: "PUT", Path: node + "/purge", Shape: []string{"/NodeModifyIndex", "/EvalIDs", "/EvalCreateIndex", "/Index"},
	},
	{Name: "a purged node", API: Nomad, Method: "GET", Path: node},
	{Name: "purge it again", API: Nomad, Method: "PUT", Path: node + "/purge"},
}

func needing(condition func(Target) bool, steps []Step) []Step {
	for i := range steps {
		steps[i].Needs = condition
	}
	return steps
}
