// SPDX-License-Identifier: Apache-2.0

package fidelity

const introductionToken = "/v1/acl/identity/client-introduction-token"

// Introduction is how a server of Nomad ≥ 1.11 gives out the tokens with which a
// client registers for the first time, with ACLs. The state has "readToken" and
// "writeToken", whose policies have node:read and node:write.
// Source: hashicorp/nomad:command/agent/acl_endpoint.go,
// ACLCreateClientIntroductionTokenRequest; nomad/acl_endpoint.go,
// CreateClientIntroductionToken; nomad/structs/acl.go, IdentityTTL.
var Introduction = []Step{
	{
		Name: "introduce a client", API: Nomad, Method: "POST", Path: introductionToken, Token: "{{.writeToken}}",
		Body: `{"TTL":"10m","NodeName":"{{.name}}","NodePool":"default"}`, Exact: []string{"/Index"}, Shape: []string{"/JWT"},
	},
	{
		Name: "introduce a client, by PUT", API: Nomad, Method: "PUT", Path: introductionToken, Token: "{{.writeToken}}",
		Body: `{"TTL":"10m","NodeName":"{{.name}}","NodePool":"default"}`, Shape: []string{"/JWT"},
	},
	{
		Name: "introduce a client for a number of nanoseconds", API: Nomad, Method: "POST", Path: introductionToken, Token: "{{.writeToken}}",
		Body: `{"TTL":600000000000,"NodeName":"{{.name}}"}`, Shape: []string{"/JWT"},
	},
	{
		Name: "introduce a client for longer than the server allows", API: Nomad, Method: "POST", Path: introductionToken, Token: "{{.writeToken}}",
		Body: `{"TTL":"100h","NodeName":"{{.name}}"}`, Shape: []string{"/JWT"},
	},
	{
		Name: "introduce any client", API: Nomad, Method: "POST", Path: introductionToken, Token: "{{.writeToken}}",
		Body: `{}`, Shape: []string{"/JWT"},
	},
	{
		Name: "introduce a client of a pool that is not there", API: Nomad, Method: "POST", Path: introductionToken, Token: "{{.writeToken}}",
		Body: `{"NodePool":"nowhere"}`, Shape: []string{"/JWT"},
	},
	{
		Name: "introduce a client in a region that is not there", API: Nomad, Method: "POST", Path: introductionToken + "?region=nowhere", Token: "{{.writeToken}}",
		Body: `{}`,
	},
	{Name: "introduce a client without a body", API: Nomad, Method: "POST", Path: introductionToken, Token: "{{.writeToken}}"},
	{Name: "introduce a client for no duration", API: Nomad, Method: "POST", Path: introductionToken, Token: "{{.writeToken}}", Body: `{"TTL":"soon"}`},
	{Name: "introduce a client by GET", API: Nomad, Method: "GET", Path: introductionToken, Token: "{{.writeToken}}"},
	{Name: "introduce a client with a token that may read nodes", API: Nomad, Method: "POST", Path: introductionToken, Token: "{{.readToken}}", Body: `{}`},
	{Name: "introduce a client without a token", API: Nomad, Method: "POST", Path: introductionToken, Token: "none", Body: `{}`},
	{
		Name: "introduce a client with a token that nobody gave out", API: Nomad, Method: "POST", Path: introductionToken,
		Token: "00000000-0000-0000-0000-000000000000", Body: `{}`,
	},
}

const nodeMeta = "/v1/client/metadata?node_id="

// Metadata is how a client's dynamic metadata is read and changed through a server.
// The state also has "node", the ID of a node that is ready.
// Source: hashicorp/nomad:command/agent/node_meta_endpoint.go; nomad/client_meta_endpoint.go;
// client/meta_endpoint.go, Apply; client/client.go, watchNodeUpdates.
var Metadata = []Step{
	{
		Name: "a client's metadata", API: Nomad, Method: "GET", Path: nodeMeta + "{{.node}}", Token: "{{.readToken}}",
		Exact: []string{"/Meta/harvester_vm_uuid", "/Static/harvester_vm_uuid", "/Dynamic"},
	},
	{
		Name: "set a client's metadata", API: Nomad, Method: "POST", Path: nodeMeta + "{{.node}}", Token: "{{.writeToken}}",
		Body:  `{"Meta":{"harvester_host":"node-1","harvester.zone":"a"}}`,
		Exact: []string{"/Meta/harvester_host", "/Meta/harvester.zone", "/Static/harvester_host", "/Dynamic"},
	},
	{
		Name: "the node has it later", API: Nomad, Method: "GET", Path: node, Until: map[string]any{"/Meta/harvester_host": "node-1"},
		Exact: []string{"/Meta/harvester_host", "/Meta/harvester.zone", "/Status", "/SchedulingEligibility"},
	},
	{
		Name: "change one value and remove another", API: Nomad, Method: "POST", Path: nodeMeta + "{{.node}}", Token: "{{.writeToken}}",
		Body:  `{"NodeID":"{{.node}}","Meta":{"harvester_host":"node-2","harvester.zone":null}}`,
		Exact: []string{"/Meta/harvester_host", "/Meta/harvester.zone", "/Dynamic"},
	},
	{
		Name: "the node has the change later", API: Nomad, Method: "GET", Path: node, Until: map[string]any{"/Meta/harvester_host": "node-2"},
		Exact: []string{"/Meta/harvester_host", "/Meta/harvester.zone"},
	},
	{
		Name: "remove a value of the configuration", API: Nomad, Method: "POST", Path: nodeMeta + "{{.node}}", Token: "{{.writeToken}}",
		Body: `{"Meta":{"harvester_vm_uuid":null}}`, Exact: []string{"/Meta/harvester_vm_uuid", "/Static/harvester_vm_uuid", "/Dynamic"},
	},
	{Name: "set no metadata", API: Nomad, Method: "POST", Path: nodeMeta + "{{.node}}", Token: "{{.writeToken}}", Body: `{"Meta":{}}`},
	{
		Name: "set metadata whose key is none", API: Nomad, Method: "POST", Path: nodeMeta + "{{.node}}", Token: "{{.writeToken}}",
		Body: `{"Meta":{"harvester/host":"x"}}`,
	},
	{
		Name: "set metadata that is no text", API: Nomad, Method: "POST", Path: nodeMeta + "{{.node}}", Token: "{{.writeToken}}",
		Body: `{"Meta":{"harvester_host":1}}`,
	},
	{
		Name: "set a client's metadata by PUT", API: Nomad, Method: "PUT", Path: nodeMeta + "{{.node}}", Token: "{{.writeToken}}",
		Body: `{"Meta":{"harvester_host":"x"}}`,
	},
	{
		Name: "set a client's metadata with a token that may read nodes", API: Nomad, Method: "POST", Path: nodeMeta + "{{.node}}", Token: "{{.readToken}}",
		Body: `{"Meta":{"harvester_host":"x"}}`,
	},
	{Name: "a client's metadata without a token", API: Nomad, Method: "GET", Path: nodeMeta + "{{.node}}", Token: "none"},
	{Name: "set metadata of no client", API: Nomad, Method: "POST", Path: "/v1/client/metadata", Token: "{{.writeToken}}", Body: `{"Meta":{"harvester_host":"x"}}`},
	{
		Name: "set metadata of a node that is not there", API: Nomad, Method: "POST", Path: nodeMeta + "00000000-0000-0000-0000-000000000000",
		Token: "{{.writeToken}}", Body: `{"Meta":{"harvester_host":"x"}}`,
	},
	{
		Name: "set metadata of an ID that is none", API: Nomad, Method: "POST", Path: nodeMeta + "x",
		Token: "{{.writeToken}}", Body: `{"Meta":{"harvester_host":"x"}}`,
	},
}

// MetadataOfTheLost is the same of a client that has ended.
var MetadataOfTheLost = []Step{
	{
		Name: "set metadata of a client that has ended", API: Nomad, Method: "POST", Path: nodeMeta + "{{.node}}", Token: "{{.writeToken}}",
		Body: `{"Meta":{"harvester_host":"x"}}`, UntilStatus: 404,
	},
	{Name: "the node of a client that has ended", API: Nomad, Method: "GET", Path: node, Until: map[string]any{"/Status": "down"}, Exact: []string{"/Meta/harvester_host"}},
	{
		Name: "set metadata of a node that is down", API: Nomad, Method: "POST", Path: nodeMeta + "{{.node}}", Token: "{{.writeToken}}",
		Body: `{"Meta":{"harvester_host":"x"}}`,
	},
}

// CleanUp is a stopped allocation whose poststop task still runs, with Nomad 1.11: in
// 1.10 it has failed by then, see busyDrain. The state also has "job", which runs on the node.
var CleanUp = []Step{
	{Name: "run a job", API: Nomad, Method: "PUT", Path: "/v1/jobs", Body: "{{.job}}", Shape: []string{"/EvalID"}},
	{
		Name: "its allocation runs", API: Nomad, Method: "GET", Path: node + "/allocations",
		Until: map[string]any{"/0/ClientStatus": "running", "/0/TaskStates/main/State": "running"}, Exact: []string{"/0/DesiredStatus"},
	},
	{
		Name: "drain the node at once", API: Nomad, Method: "PUT", Path: node + "/drain", Body: `{"DrainSpec":{"Deadline":-1}}`,
		Shape: []string{"/NodeModifyIndex"},
	},
	{
		Name: "an allocation runs while its clean-up does", API: Nomad, Method: "GET", Path: node + "/allocations",
		Until: map[string]any{"/0/ClientStatus": "running", "/0/TaskStates/cleanup/State": "running"},
		Exact: []string{"/0/DesiredStatus", "/0/TaskStates/main/State", "/0/TaskStates/main/Failed"},
	},
	{
		Name: "then it is complete", API: Nomad, Method: "GET", Path: node + "/allocations",
		Until: map[string]any{"/0/TaskStates/cleanup/State": "dead"}, Exact: []string{"/0/ClientStatus", "/0/DesiredStatus"},
	},
}
