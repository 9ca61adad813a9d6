// SPDX-License-Identifier: Apache-2.0

package fidelity

const (
	vms     = "/apis/kubevirt.io/v1/namespaces/{{.ns}}/virtualmachines"
	vmis    = "/apis/kubevirt.io/v1/namespaces/{{.ns}}/virtualmachineinstances"
	secrets = "/api/v1/namespaces/{{.ns}}/secrets"
	claims  = "/api/v1/namespaces/{{.ns}}/persistentvolumeclaims"
	leases  = "/apis/coordination.k8s.io/v1/namespaces/{{.ns}}/leases"
	events  = "/api/v1/namespaces/{{.ns}}/events"
	events1 = "/apis/events.k8s.io/v1/namespaces/{{.ns}}/events"

	merge = "application/merge-patch+json"
	pool  = "labelSelector=nomad-harvester-autoscaler%2Fpool%3Dclients"
)

func compacts(t Target) bool    { return t.Compact != nil }
func knowsRights(t Target) bool { return t.ForbiddenToken != "" }
func runsJobs(t Target) bool    { return t.RunsJobs }

// creation holds the steps that create the Secret and the VM for the other ones.
var creation = []Step{
	{
		Name: "an unknown path", Method: "GET", Path: "/apis/kubevirt.io/v1/namespaces/{{.ns}}/nosuchthings",
	},
	{
		Name: "a VM that is not there", Method: "GET", Path: vms + "/{{.name}}",
	},
	{
		Name: "an empty list", Method: "GET", Path: vms + "?" + pool,
		Exact: []string{"/kind", "/apiVersion", "/items"}, Shape: []string{"/metadata/resourceVersion", "/metadata/continue", "/metadata/remainingItemCount"},
	},
	{
		Name: "create a Secret", Method: "POST", Path: secrets, Body: "{{.secret}}",
		Exact: []string{"/kind", "/apiVersion", "/type", "/metadata/name", "/metadata/namespace", "/metadata/labels", "/metadata/ownerReferences"},
		Shape: []string{"/metadata/uid", "/metadata/resourceVersion", "/metadata/creationTimestamp", "/data/userdata"},
		Keep:  map[string]string{"secretUID": "/metadata/uid", "secretRV": "/metadata/resourceVersion"},
	},
	{
		Name: "create a Secret of nobody", Method: "POST", Path: secrets,
		Body: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"{{.name}}-orphan"},"stringData":{"userdata":"x"}}`,
		Keep: map[string]string{"orphanUID": "/metadata/uid"}, Exact: []string{"/data/userdata", "/stringData", "/type"},
	},
	{Name: "create the Secret again", Method: "POST", Path: secrets, Body: "{{.secret}}"},
	{Name: "a VM with a misspelt field, strictly", Method: "POST", Path: vms + "?fieldValidation=Strict", Body: "{{.typo}}"},
	{Name: "a VM with a misspelt field, on trial", Method: "POST", Path: vms + "?dryRun=All", Body: "{{.typo}}", Headers: []string{"Warning"}},
	{Name: "a VM without a run strategy's type", Method: "POST", Path: vms, Body: "{{.wrongType}}"},
	{Name: "a VM that is not JSON", Method: "POST", Path: vms, Body: "{{.name}}"},
	{Name: "a VM of another name than its path", Method: "PUT", Path: vms + "/other", Body: "{{.vm}}"},
	{Name: "a VM for a namespace that is not there", Method: "POST", Path: "/apis/kubevirt.io/v1/namespaces/nowhere/virtualmachines", Body: "{{.vmElsewhere}}"},
	{
		Name: "create a VM on trial", Method: "POST", Path: vms + "?dryRun=All&fieldValidation=Strict", Body: "{{.vm}}",
		Exact: []string{"/metadata/name"}, Shape: []string{"/metadata/uid", "/metadata/resourceVersion", "/metadata/creationTimestamp", "/status"},
	},
	{Name: "a trial leaves nothing", Method: "GET", Path: vms + "/{{.name}}"},
	{
		Name: "create a VM", Method: "POST", Path: vms + "?fieldValidation=Strict", Body: "{{.vm}}",
		Exact: []string{"/kind", "/apiVersion", "/metadata/name", "/metadata/namespace", "/metadata/labels", "/metadata/generation", "/spec/runStrategy"},
		Shape: []string{"/metadata/uid", "/metadata/resourceVersion", "/metadata/creationTimestamp", "/metadata/deletionTimestamp", "/metadata/managedFields"},
		Keep:  map[string]string{"uid": "/metadata/uid", "firstRV": "/metadata/resourceVersion"}, Headers: []string{"Warning"},
	},
	{Name: "create the VM again", Method: "POST", Path: vms, Body: "{{.vm}}"},
	{
		Name: "make the VM its Secret's owner", Method: "PATCH", Path: secrets + "/{{.name}}-cloudinit?fieldValidation=Strict", Type: merge,
		Body:  `{"metadata":{"ownerReferences":[{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","name":"{{.name}}","uid":"{{.uid}}","blockOwnerDeletion":false}]}}`,
		Exact: []string{"/metadata/ownerReferences"},
	},
	{
		Name: "the VM's claim comes", Method: "GET", Path: claims + "/{{.name}}-disk-0-a1b2c", UntilStatus: 200,
		Exact: []string{"/metadata/name", "/metadata/labels", "/metadata/ownerReferences", "/spec/storageClassName", "/spec/resources/requests/storage"},
		Shape: []string{"/metadata/uid", "/metadata/resourceVersion", "/metadata/creationTimestamp"},
		Keep:  map[string]string{"claimUID": "/metadata/uid"},
	},
	{
		Name: "the VM runs", Method: "GET", Path: vms + "/{{.name}}", Until: map[string]any{"/status/printableStatus": "Running", "/status/ready": true},
		Exact: []string{"/status/printableStatus", "/status/ready", "/status/created", "/metadata/generation"},
		Shape: []string{"/status/conditions", "/status/conditions/0/type", "/status/conditions/0/status", "/metadata/finalizers"},
		Keep:  map[string]string{"rv": "/metadata/resourceVersion"},
	},
	{
		Name: "its instance runs", Method: "GET", Path: vmis + "/{{.name}}",
		Exact: []string{"/kind", "/metadata/name", "/status/phase", "/metadata/ownerReferences/0/kind", "/metadata/ownerReferences/0/name"},
		Shape: []string{"/metadata/uid", "/status/interfaces", "/status/interfaces/0/name", "/status/interfaces/0/ipAddress", "/status/nodeName"},
	},
	{Name: "an instance that is not there", Method: "GET", Path: vmis + "/nobody"},
}

// reading holds the steps for lists and pages.
var reading = []Step{
	{
		Name: "the pool's VMs", Method: "GET", Path: vms + "?" + pool,
		Exact: []string{"/kind", "/apiVersion", "/items/0/metadata/name", "/items/0/status/printableStatus", "/items/1"},
		Shape: []string{"/metadata/resourceVersion", "/items/0/metadata/uid", "/items/0/kind", "/items/0/apiVersion"}, Headers: []string{"Content-Encoding"},
	},
	{
		Name: "the metadata of the pool's VMs", Method: "GET", Path: vms + "?" + pool,
		Accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
		Exact:  []string{"/kind", "/apiVersion", "/items/0/kind", "/items/0/apiVersion", "/items/0/metadata/name", "/items/0/spec", "/items/0/status", "/items/1"},
		Shape:  []string{"/metadata/resourceVersion", "/metadata/continue", "/items/0/metadata/uid", "/items/0/metadata/resourceVersion"},
	},
	{Name: "a selector that cannot be parsed", Method: "GET", Path: vms + "?labelSelector=%3D%3D"},
	{
		Name: "a first page", Method: "GET", Path: secrets + "?limit=1",
		Shape: []string{"/metadata/continue", "/metadata/remainingItemCount", "/items/0", "/items/1", "/items/0/kind"},
		Keep:  map[string]string{"page": "/metadata/continue"},
	},
	{
		Name: "the last page", Method: "GET", Path: secrets + "?limit=1&continue={{.page}}",
		Shape: []string{"/metadata/continue", "/metadata/remainingItemCount", "/items/0", "/items/1"},
	},
	{
		Name: "a first page with a selector", Method: "GET", Path: secrets + "?limit=1&" + pool,
		Shape: []string{"/metadata/continue", "/metadata/remainingItemCount", "/items/0", "/items/1"},
	},
	{Name: "a page that nobody gave out", Method: "GET", Path: secrets + "?limit=1&continue=nonsense"},
	{
		Name: "a change after the first page", Method: "PATCH", Path: secrets + "/{{.name}}-orphan", Type: merge,
		Body: `{"metadata":{"annotations":{"probe":"1"}}}`, Exact: []string{"/metadata/annotations"},
	},
	{
		Name: "a page that has expired", Method: "GET", Path: secrets + "?limit=1&continue={{.page}}", Needs: compacts,
		Before: func(t Target) error { return t.Compact() }, Shape: []string{"/metadata/continue"},
	},
	{Name: "a token that nobody gave out", Method: "GET", Path: vms, Token: "wrong", Needs: knowsRights},
	{Name: "a right that nobody gave", Method: "GET", Path: "/api/v1/namespaces/{{.ns}}/services", Token: "{{.forbiddenToken}}", Needs: knowsRights},
	{
		Name: "may I delete VMs", Method: "POST", Path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		Body:  `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"namespace":"{{.ns}}","verb":"delete","group":"kubevirt.io","resource":"virtualmachines"}}}`,
		Exact: []string{"/kind", "/status/allowed"},
	},
	{
		Name: "what may I do", Method: "POST", Path: "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
		Body:  `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"{{.ns}}"}}`,
		Exact: []string{"/kind", "/status/incomplete"}, Shape: []string{"/status/resourceRules", "/status/resourceRules/0/verbs", "/status/resourceRules/0/apiGroups", "/status/resourceRules/0/resources"},
	},
	{Name: "the version", Method: "GET", Path: "/version", Shape: []string{"/major", "/minor", "/gitVersion"}},
}

// changing holds the steps for PATCH and DELETE, accepted and refused.
var changing = []Step{
	{
		Name: "patch with an old version", Method: "PATCH", Path: vms + "/{{.name}}", Type: merge,
		Body: `{"metadata":{"resourceVersion":"{{.firstRV}}","annotations":{"probe":"1"}}}`,
	},
	{
		// Controllers write the VM, too.
		Name: "patch with the current version", Method: "PATCH", Path: vms + "/{{.name}}", Type: merge, Reread: vms + "/{{.name}}", UntilStatus: 200,
		Body:  `{"metadata":{"resourceVersion":"{{.rv}}","annotations":{"probe":"1"}}}`,
		Exact: []string{"/metadata/annotations/probe", "/metadata/generation"}, Keep: map[string]string{"rv": "/metadata/resourceVersion"},
	},
	{
		Name: "patch that changes nothing", Method: "PATCH", Path: vms + "/{{.name}}", Type: merge,
		Body:  `{"metadata":{"annotations":{"probe":"1"}}}`,
		Exact: []string{"/metadata/annotations/probe"}, Keep: map[string]string{"sameRV": "/metadata/resourceVersion"},
	},
	{
		Name: "a patch that changed nothing left the version", Method: "PATCH", Path: vms + "/{{.name}}", Type: merge,
		Body: `{"metadata":{"resourceVersion":"{{.rv}}","annotations":{"probe":null}}}`, Exact: []string{"/metadata/annotations/probe"},
	},
	{
		Name: "patch with another uid", Method: "PATCH", Path: vms + "/{{.name}}", Type: merge,
		Body: `{"metadata":{"uid":"00000000-0000-0000-0000-000000000000","annotations":{"probe":"2"}}}`,
	},
	{Name: "patch that is not JSON", Method: "PATCH", Path: vms + "/{{.name}}", Type: merge, Body: "{"},
	{Name: "patch of a kind that custom resources lack", Method: "PATCH", Path: vms + "/{{.name}}", Type: "application/strategic-merge-patch+json", Body: `{}`},
	{Name: "patch of a VM that is not there", Method: "PATCH", Path: vms + "/nobody", Type: merge, Body: `{"metadata":{"annotations":{"probe":"1"}}}`},
	{Name: "delete a VM that is not there", Method: "DELETE", Path: vms + "/nobody"},
	{
		Name: "delete with another uid", Method: "DELETE", Path: vms + "/{{.name}}",
		Body: `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}`,
	},
	{
		Name: "delete with an old version", Method: "DELETE", Path: vms + "/{{.name}}",
		Body: `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"{{.uid}}","resourceVersion":"{{.firstRV}}"}}`,
	},
	{
		Name: "delete on trial", Method: "DELETE", Path: vms + "/{{.name}}?dryRun=All",
		Exact: []string{"/kind"}, Shape: []string{"/metadata/deletionTimestamp"},
	},
	{
		Name: "delete the claim with another uid", Method: "DELETE", Path: claims + "/{{.name}}-disk-0-a1b2c",
		Body: `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}`,
	},
	{Name: "delete a claim that is not there", Method: "DELETE", Path: claims + "/nothing"},
}

// belongings holds the steps for a Secret without a VM, Leases and Events.
var belongings = []Step{
	{
		Name: "delete a Secret with another uid", Method: "DELETE", Path: secrets + "/{{.name}}-orphan",
		Body: `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}`,
	},
	{
		Name: "delete a Secret", Method: "DELETE", Path: secrets + "/{{.name}}-orphan",
		Body:  `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"{{.orphanUID}}"}}`,
		Exact: []string{"/kind", "/status", "/details/name", "/details/kind"}, Shape: []string{"/details/uid"},
	},
	{Name: "delete the Secret again", Method: "DELETE", Path: secrets + "/{{.name}}-orphan"},
	{
		Name: "a Lease with milliseconds", Method: "POST", Path: leases,
		Body: `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"{{.name}}"},"spec":{"renewTime":"2026-01-02T03:04:05.678Z"}}`,
	},
	{
		Name: "create a Lease", Method: "POST", Path: leases + "?fieldValidation=Strict",
		Body:  `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"{{.name}}"},"spec":{"holderIdentity":"a","leaseDurationSeconds":20,"acquireTime":"2026-01-02T03:04:05.678901Z","renewTime":"2026-01-02T03:04:05.678901Z","leaseTransitions":0}}`,
		Exact: []string{"/kind", "/apiVersion", "/spec"}, Keep: map[string]string{"leaseRV": "/metadata/resourceVersion", "leaseUID": "/metadata/uid"}, Headers: []string{"Warning"},
	},
	{
		Name: "create the Lease again", Method: "POST", Path: leases,
		Body: `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"{{.name}}"},"spec":{"holderIdentity":"b"}}`,
	},
	{
		Name: "renew a Lease", Method: "PUT", Path: leases + "/{{.name}}",
		Body:  `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"{{.name}}","resourceVersion":"{{.leaseRV}}"},"spec":{"holderIdentity":"a","leaseDurationSeconds":20,"renewTime":"2026-01-02T03:04:08.000000Z"}}`,
		Exact: []string{"/spec"}, Keep: map[string]string{"leaseNewRV": "/metadata/resourceVersion"},
	},
	{
		Name: "renew a Lease with an old version", Method: "PUT", Path: leases + "/{{.name}}",
		Body: `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"{{.name}}","resourceVersion":"{{.leaseRV}}"},"spec":{"holderIdentity":"b"}}`,
	},
	{
		Name: "annotate a Lease", Method: "PATCH", Path: leases + "/{{.name}}", Type: merge,
		Body:  `{"metadata":{"resourceVersion":"{{.leaseNewRV}}","annotations":{"probe":"{}"}}}`,
		Exact: []string{"/metadata/annotations", "/spec/holderIdentity"},
	},
	{
		Name: "annotate a Lease with an old version", Method: "PATCH", Path: leases + "/{{.name}}", Type: merge,
		Body: `{"metadata":{"resourceVersion":"{{.leaseRV}}","annotations":{"probe":"{}"}}}`,
	},
	{
		Name: "release a Lease", Method: "PATCH", Path: leases + "/{{.name}}", Type: merge,
		Body: `{"spec":{"holderIdentity":""}}`, Exact: []string{"/spec/holderIdentity"},
	},
	{
		Name: "release a Lease by null", Method: "PATCH", Path: leases + "/{{.name}}", Type: merge,
		Body: `{"spec":{"holderIdentity":null}}`, Exact: []string{"/spec/holderIdentity"},
	},
	{Name: "a Lease that is not there", Method: "GET", Path: leases + "/nothing"},
	{
		Name: "an Event on the VM", Method: "POST", Path: events,
		Body:  `{"apiVersion":"v1","kind":"Event","metadata":{"name":"{{.name}}.1"},"involvedObject":{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","namespace":"{{.ns}}","name":"{{.name}}","uid":"{{.uid}}"},"reason":"Joined","message":"m","type":"Normal","firstTimestamp":"2026-01-02T03:04:05Z","lastTimestamp":"2026-01-02T03:04:05Z","count":1,"source":{"component":"probe"}}`,
		Exact: []string{"/kind", "/reason", "/type"},
	},
	{
		Name: "an Event on another namespace's VM", Method: "POST", Path: events,
		Body: `{"apiVersion":"v1","kind":"Event","metadata":{"name":"{{.name}}.2"},"involvedObject":{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","namespace":"elsewhere","name":"{{.name}}"},"reason":"Joined","message":"m","type":"Normal"}`,
	},
	{
		Name: "an Event of events.k8s.io", Method: "POST", Path: events1 + "?fieldValidation=Strict",
		Body:  `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"{{.name}}.3","namespace":"{{.ns}}"},"eventTime":"2026-01-02T03:04:05.678901Z","reportingController":"nomad-harvester-autoscaler","reportingInstance":"probe","action":"Drain","reason":"DrainStarted","regarding":{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","namespace":"{{.ns}}","name":"{{.name}}","uid":"{{.uid}}"},"note":"n","type":"Normal"}`,
		Exact: []string{"/kind", "/apiVersion", "/eventTime", "/note", "/reason", "/type", "/series"}, Shape: []string{"/metadata/uid", "/metadata/resourceVersion"}, Headers: []string{"Warning"},
	},
	{
		Name: "count an Event", Method: "PATCH", Path: events1 + "/{{.name}}.3", Type: merge,
		Body:  `{"series":{"count":2,"lastObservedTime":"2026-01-02T03:05:05.000000Z"}}`,
		Exact: []string{"/series"},
	},
	{
		Name: "count an Event once", Method: "PATCH", Path: events1 + "/{{.name}}.3", Type: merge,
		Body: `{"series":{"count":1,"lastObservedTime":"2026-01-02T03:05:05.000000Z"}}`,
	},
	{
		Name: "change the note of an Event", Method: "PATCH", Path: events1 + "/{{.name}}.3", Type: merge,
		Body: `{"note":"other"}`,
	},
	{
		Name: "a warning about a claim", Method: "POST", Path: events1,
		Body:  `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"{{.name}}.6","namespace":"{{.ns}}"},"eventTime":"2026-01-02T03:04:05.678901Z","reportingController":"probe","reportingInstance":"probe","action":"Provision","reason":"ProvisioningFailed","regarding":{"apiVersion":"v1","kind":"PersistentVolumeClaim","namespace":"{{.ns}}","name":"{{.name}}-probe"},"note":"n","type":"Warning"}`,
		Exact: []string{"/kind", "/type"},
	},
	{
		Name: "warnings about claims", Method: "GET", Path: events1 + "?fieldSelector=type%3DWarning,regarding.kind%3DPersistentVolumeClaim,regarding.name%3D{{.name}}-probe",
		Exact: []string{"/kind", "/items/0/reason", "/items/0/note", "/items/1"},
	},
	{
		Name: "warnings about DataVolumes", Method: "GET", Path: events1 + "?fieldSelector=type%3DWarning,regarding.kind%3DDataVolume,regarding.name%3D{{.name}}-probe",
		Exact: []string{"/kind", "/items"},
	},
	{Name: "Events by an unknown field", Method: "GET", Path: events1 + "?fieldSelector=note%3Dn"},
	{Name: "Secrets by a field of Events", Method: "GET", Path: secrets + "?fieldSelector=regarding.kind%3DPod"},
	{
		Name: "an Event of events.k8s.io without a time", Method: "POST", Path: events1,
		Body: `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"{{.name}}.4","namespace":"{{.ns}}"},"reportingController":"nomad-harvester-autoscaler","reportingInstance":"probe","action":"Drain","reason":"DrainStarted","regarding":{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","namespace":"{{.ns}}","name":"{{.name}}","uid":"{{.uid}}"},"note":"n","type":"Normal"}`,
	},
	{
		Name: "an Event of events.k8s.io with whole seconds", Method: "POST", Path: events1,
		Body: `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"{{.name}}.5","namespace":"{{.ns}}"},"eventTime":"2026-01-02T03:04:05Z","reportingController":"nomad-harvester-autoscaler","reportingInstance":"probe","action":"Drain","reason":"DrainStarted","regarding":{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","namespace":"{{.ns}}","name":"{{.name}}","uid":"{{.uid}}"},"note":"n","type":"Normal"}`,
	},
	{
		Name: "resource quotas", Method: "GET", Path: "/api/v1/namespaces/{{.ns}}/resourcequotas", Exact: []string{"/kind", "/items"},
	},
}

// removal holds the steps for the removal of the VM and of what it owned.
var removal = []Step{
	{
		Name: "delete the VM with its uid", Method: "DELETE", Path: vms + "/{{.name}}?propagationPolicy=Foreground",
		Body:  `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"{{.uid}}"}}`,
		Exact: []string{"/kind", "/metadata/name", "/metadata/deletionGracePeriodSeconds"}, Shape: []string{"/metadata/deletionTimestamp", "/metadata/uid"},
	},
	{
		Name: "delete it again", Method: "DELETE", Path: vms + "/{{.name}}",
		Body:  `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"{{.uid}}"}}`,
		Exact: []string{"/kind"}, Shape: []string{"/metadata/deletionTimestamp"},
	},
	{
		Name: "patch it while it goes", Method: "PATCH", Path: vms + "/{{.name}}", Type: merge,
		Body: `{"metadata":{"annotations":{"probe":"3"}}}`, Exact: []string{"/metadata/annotations/probe"},
	},
	{Name: "create it while it goes", Method: "POST", Path: vms, Body: "{{.vm}}"},
	{Name: "the VM is gone", Method: "GET", Path: vms + "/{{.name}}", UntilStatus: 404},
	{Name: "its claim is gone", Method: "GET", Path: claims + "/{{.name}}-disk-0-a1b2c", UntilStatus: 404},
	{Name: "its Secret is gone", Method: "GET", Path: secrets + "/{{.name}}-cloudinit", UntilStatus: 404},
	{Name: "its instance is gone", Method: "GET", Path: vmis + "/{{.name}}", UntilStatus: 404},
}
