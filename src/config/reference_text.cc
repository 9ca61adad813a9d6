// SPDX-License-Identifier: Apache-2.0
#include "reference_text.h"

#include <string_view>

namespace nomad_harvester::config {

std::string_view IntroductionText() {
  return R"md(<!-- Generated from src/config. To change this page, change the option table or the text there and
     run the test executable config_test once with NOMAD_HARVESTER_UPDATE_DOCS=1 in its environment. -->
# Configuration

The plugin reads two blocks: its own, once and at each reload of the agent, and the `target` block of
each policy, with every call. Examples: [agent.hcl](../examples/agent.hcl),
[policy.hcl](../examples/policy.hcl), [cloud-init.yaml](../examples/cloud-init.yaml).

All values are strings in HCL:

| Type | Written as |
|---|---|
| boolean | what Go's `strconv.ParseBool` takes: `true`, `false`, `1`, `0`, `t`, `f`, … |
| duration | Go's syntax: `90s`, `15m`, `1h30m`; greater than 0 unless the type is "any sign", ten years at most |
| whole number | decimal, greater than 0 |
| quantity | Kubernetes' syntax: `4Gi`, `500M`; greater than 0 |
| list | comma-separated: `a,b` |
| map | comma-separated pairs: `a=1,b=2` |
| path | a file on the machine of the agent, as the agent's user sees it |

- Every problem of a block is reported at once, one line each: the key, what is wrong, the fix.
- An unknown key is an error that names the nearest known key. `dry-run` and keys that begin with
  `_nomad_autoscaler_` belong to the agent and are accepted.
- An invalid value is never replaced by a default, and an empty value is invalid. Exceptions: an
  empty list or map has no elements; an empty string of a key `nomad_…` counts as absent;
  `node_class`, `datacenter` and `node_pool` count as given even if they are empty.
- An environment variable that is empty counts as unset.
- Secrets are never logged and never part of an error.
)md";
}

std::string_view PluginRulesText() {
  return R"md(`target "harvester" { driver = "harvester"  config = { … } }` in the agent's configuration. If
a reload's configuration is refused, the plugin keeps its previous one.

An environment variable takes precedence over its key, except in the table of Nomad, where most of them
are only used if the key is absent or empty.

**Credentials for Harvester**, the first that is set: `HARVESTER_TOKEN` or `HARVESTER_TOKEN_FILE`;
`auth_token` or `auth_token_file`; those of the kubeconfig. Both of one pair are an error. None at all
is a warning, since a proxy may add them. Redirects are never followed.

Templates can use the variables of the agent's environment whose names begin with
`HARVESTER_TEMPLATE_`. `NOMAD_ALLOC_ID`, which Nomad sets for its tasks, identifies the node that runs
the autoscaler itself: that node is never removed.
)md";
}

std::string_view PolicyRulesText() {
  return R"md(`policy { target "harvester" { … } }`. Status and Scale both check the whole block.
)md";
}

std::string_view TemplatesText() {
  return R"md(## Templates

User data is a [Mustache](https://mustache.github.io/mustache.5.html) template of variables only, and
nothing is escaped for HTML:

| Variable | Value |
|---|---|
| `{{vm_name}}` | name of the VM: by default also its host name, which links it to its Nomad node |
| `{{vm_uuid}}` | UUID of its firmware, known before the VM exists: for the meta `harvester_vm_uuid` of the Nomad client, the identity hint |
| `{{short_id}}` | the random part of the name |
| `{{pool}}`, `{{namespace}}` | `node_group_name` and `namespace` of the policy |
| `{{node_class}}`, `{{node_pool}}`, `{{datacenter}}` | as in the policy; empty if not set there |
| `{{nomad_region}}` | `nomad_region`; empty if not set |
| `{{zone}}` | reserved for availability zones, which pools do not have yet: always empty |
| `{{policy_id}}`, `{{action_id}}` | the policy, and the scaling action that creates the VM |
| `{{env.HARVESTER_TEMPLATE_X}}` | a variable of the agent's environment; its name must begin with `HARVESTER_TEMPLATE_` |

An unknown variable is an error with line and column, never an empty string. Sections and partials are
refused. User data that contains `{{ }}` for another program (Jinja, consul-template, Nomad) must change
the delimiters at the top as Mustache defines it: after `{{=<% %>=}}` a variable is `<%vm_name%>`, and
`{{ }}` is ordinary text.

A template that begins with `#cloud-config` must be valid YAML once it is rendered. User data is always
in a Secret that the VM owns, never in the VM object.
)md";
}

std::string_view ObjectsText() {
  return R"md(## On the objects

What the plugin writes on objects in Harvester, and what operators may write. Keys have the prefix
`nomad-harvester-autoscaler/` unless another one is shown; times are RFC 3339 in UTC by the API
server's clock, durations are in Go's syntax.

| Key | Where | When | Meaning |
|---|---|---|---|
| `pool` and `app.kubernetes.io/managed-by: nomad-harvester-autoscaler` | labels of VM, Secret, volume claim and Lease | creation | the pool of the object |
| `harvesterhci.io/creator: nomad-harvester-autoscaler` | label of the VM | creation | Harvester's own label for the creator |
| `self` | annotation of the VM | creation | `<name>/<firmware UUID>`; a clone has another name, so it is not a member of the pool |
| `action-id` | annotation of VM and Secret | creation | the action that created it |
| `template-hash` | annotation of the VM | creation | `v2:` and a hash of everything of the policy that shapes the VM: the templates before rendering, resolved image, networks, keys, CPU, memory, disks, placement, labels; nothing that differs from VM to VM, no variable of the environment. A hash of another version is no drift |
| `join-timeout` | annotation of the VM | creation | a duration from the VM's creation, or `none`: no deadline, or no longer one |
| `nodes` | annotation of the VM | creation | JSON `{region, node_class, datacenter, node_pool, node_attribute, index}`: the node identifiers that it was created for, and Nomad's index at that time; identifiers that the policy does not set are omitted |
| `nomad-node-id`, `joined-at` | annotations of the VM | its join, in one write | the VM's node, and the time of the join |
| `scale-in` | annotation of the VM | before its drain | the mark, JSON `{action, reason, vm_uid, node_id, marked_at, drain_deadline, grace, force, ignore_system, purge, nodes}`: everything that is needed to finish the removal, regardless of later changes of the policy. `reason` is `scale-in`, `broken` or `unhealthy`; `drain_deadline` a time, `none` (no limit) or `now` |
| `rolled-back` | annotation of the VM | once its node is eligible again, or was ineligible before | `<action>@<time>`: the drain that was rolled back, identified by the time it started |
| `removal-refused` | annotation of the VM | when its mark is removed because its drain or its deletion was refused for a minute | a time: for an hour the VM is chosen last |
| `protect` | annotation of the VM | by the operator | `true`: never removed; a time: not removed until then; any other value that is not a boolean counts as `true`. A removal that has begun is rolled back |
| `delete-first` | annotation of the VM | by the operator | `true`: removed before all others |
| `action` | annotation of the Lease | before the first VM is created, marked or taken back | JSON `{id, from, to, names, create, back}`: the names that the action creates or marks, with unfinished ones of an earlier action and VMs that are gone but not cleaned up; `create` has those that do not exist yet, each with its action id; `back` those whose removal it cancels |
| `back-off` | annotation of the Lease | on change | JSON `{cause: {failures, retry_at}}` |
| `last-event` | annotation of the Lease | on change | time of the last change by an action |
| `paused` | annotation of the Lease | by the operator | `true`, or a time until which it holds: the pool is not ready, a Scale is refused, and the background only rolls back and cleans up |
| `policy` | annotation of the Lease | by each Scale | JSON `{id, at}`: the last policy that scaled, and when; another one within ten minutes is a WARN |

Members of these JSON objects that the plugin does not know are kept; an object that it cannot read is
reported and counts as absent. A mark that cannot be read, because it was edited, is rolled back: it is
removed, and the node's drain is undone.

| Object | Name |
|---|---|
| VM | `<prefix>-<random>` |
| volume claim | `<vm>-disk-<i>-<random>` |
| Secret | `<vm>-cloudinit` |
| Lease | `nomad-harvester-autoscaler-<pool>` |

Names are never reused. Order of creation: the Lease's `action`, the Secret without an owner, the
VM, the Secret's owner. A VM therefore always has its Secret; a Secret whose VM does not exist is
garbage once it is ten minutes old. A volume claim is the plugin's if it has the label, or if its name
follows the pattern for a VM that the plugin deleted; it is removed once that VM no longer exists and no
other VM of the namespace uses it.

Drains of the plugin carry metadata, which the `LastDrain` of a node in Nomad's API shows:
`drained_by=nomad-autoscaler`, `action`, `vm`, `vm_uid`, `pool=<namespace>/<name>`, `purge`, and `was`,
which is `ineligible` for a node that was ineligible before the drain.

Operators may also write on Nomad nodes: meta `harvester_protect=true` keeps a node from removal, and
`harvester_vm_uuid` is the UUID of its VM, or `none` on a machine that is not a VM of a pool.
)md";
}

}  // namespace nomad_harvester::config
