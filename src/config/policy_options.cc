// SPDX-License-Identifier: Apache-2.0
// The keys of a policy's target block (Status and Scale). Order: that of the reference and of
// problems.
#include <span>

#include "options.h"

namespace nomad_harvester::config {
namespace {

constexpr char kPool[] = "The pool";
constexpr char kNodes[] = "Nomad nodes";
constexpr char kMachines[] = "Virtual machines";
constexpr char kGrowing[] = "Scaling out";
constexpr char kShrinking[] = "Scaling in";
constexpr char kRemediation[] = "Replacing unhealthy VMs";

constexpr Option Policy(Option option) {
  option.section = Section::kPolicy;
  return option;
}

constexpr Option kPolicyOptions[] = {
    Policy({.group = kPool,
            .key = "node_group_name",
            .required = true,
            .documentation = "Name of the pool: a label of its VMs, and the default of "
                             "`name_prefix`. A DNS label of at most 40 characters."}),
    Policy({.group = kPool,
            .key = "namespace",
            .default_text = "default",
            .documentation = "Harvester namespace of the VMs. Pool names are unique within it."}),
    Policy({.group = kPool,
            .key = "dry-run",
            .type = OptionType::kBool,
            .default_text = "false",
            .documentation =
                "The agent's own key. With exactly `true` the agent requests only plans: they are "
                "logged with names, victims and reasons, and nothing is changed."}),
    Policy(
        {.group = kPool,
         .key = "scale_timeout",
         .type = OptionType::kDuration,
         .default_text = "2h",
         .documentation =
             "Limit of one Scale call. After it no more VMs are created or marked, the call fails "
             "with one line for each VM, and unfinished work continues in the background."}),

    Policy({.group = kNodes,
            .key = "node_class",
            .documentation = "Node class of the pool's nodes; `autoscaler-default-pool` selects "
                             "the nodes without class. At least one of `node_class`, `datacenter` "
                             "and `node_pool` is required; a node must match all that are given."}),
    Policy({.group = kNodes,
            .key = "datacenter",
            .documentation = "Nomad datacenter of the pool's nodes."}),
    Policy({.group = kNodes,
            .key = "node_pool",
            .documentation = "Nomad node pool of the pool's nodes."}),
    Policy({.group = kNodes,
            .key = "node_attribute",
            .default_text = "unique.hostname",
            .documentation = "Node attribute, or `meta.KEY`, that contains the VM's name. Host "
                             "names are compared by their first label, ignoring case."}),
    Policy({.group = kNodes,
            .key = "node_filter_ignore_init",
            .type = OptionType::kBool,
            .default_text = "false",
            .documentation = "Initializing nodes do not make the pool unready."}),
    Policy({.group = kNodes,
            .key = "node_filter_ignore_drain",
            .type = OptionType::kBool,
            .default_text = "false",
            .documentation = "Draining nodes do not make the pool unready."}),
    Policy({.group = kNodes,
            .key = "node_filter_ignore_ineligible",
            .type = OptionType::kBool,
            .default_note = "`false` for Status, `true` for scaling in",
            .documentation = "Ready but ineligible nodes are members of the pool."}),

    Policy({.group = kMachines,
            .key = "image",
            .required = true,
            .documentation = "`NAMESPACE/IMAGE`: the resource name of a Harvester image, otherwise "
                             "its display name; exactly one image must match."}),
    Policy({.group = kMachines,
            .key = "cpu_request",
            .type = OptionType::kCount,
            .required = true,
            .documentation = "Cores of a VM, its CPU limit. Harvester derives the request from its "
                             "overcommit settings."}),
    Policy(
        {.group = kMachines,
         .key = "memory_request",
         .type = OptionType::kQuantity,
         .required = true,
         .documentation =
             "Memory of a VM, such as `8Gi`, its memory limit. The request is derived likewise."}),
    Policy({.group = kMachines,
            .key = "disk_size",
            .type = OptionType::kQuantity,
            .default_note = "the larger of `10Gi` and the image's virtual size",
            .documentation =
                "Size of the root disk. Smaller than the image's virtual size is an error."}),
    Policy({.group = kMachines,
            .key = "networks",
            .type = OptionType::kList,
            .required = true,
            .documentation = "Networks in the order of the interfaces: `NAMESPACE/NETWORK`, or "
                             "`management` for the pod network (masquerade)."}),
    Policy({.group = kMachines,
            .key = "user_data",
            .documentation = "cloud-init user data, a template (see below). The agent logs the "
                             "whole block of a policy at every evaluation, so inline user data is "
                             "visible in its log: prefer `user_data_file`. At most one of the two; "
                             "without either, the user data is `#cloud-config`."}),
    Policy({.group = kMachines,
            .key = "user_data_file",
            .type = OptionType::kPath,
            .documentation = "File with such a template, on the machine of the agent."}),
    Policy({.group = kMachines,
            .key = "ssh_keys",
            .type = OptionType::kList,
            .documentation = "`NAMESPACE/KEYPAIR` of Harvester: public keys merged into the user "
                             "data, which must then be `#cloud-config` or absent."}),
    Policy({.group = kMachines,
            .key = "name_prefix",
            .default_note = "`node_group_name`",
            .documentation = "VM names are `PREFIX-RANDOM`, 50 characters at most; the random part "
                             "takes 8, which leaves 41 for the prefix, a DNS label."}),
    Policy({.group = kMachines,
            .key = "labels",
            .type = OptionType::kMap,
            .documentation =
                "Labels of the VMs. Keys that Harvester, KubeVirt and the plugin write "
                "themselves are refused: `nomad-harvester-autoscaler/…`, "
                "`harvesterhci.io/…`, `kubevirt.io/…`, `app.kubernetes.io/managed-by`."}),
    Policy({.group = kMachines,
            .key = "annotations",
            .type = OptionType::kMap,
            .documentation = "Annotations of the VMs; the same keys are refused."}),
    Policy(
        {.group = kMachines,
         .key = "tags",
         .type = OptionType::kMap,
         .documentation = "Harvester's tags: each becomes the label `tag.harvesterhci.io/KEY`."}),
    Policy({.group = kMachines,
            .key = "run_strategy",
            .type = OptionType::kEnum,
            .default_text = "RerunOnFailure",
            .documentation =
                "KubeVirt's run strategy. Its other values never boot a VM and are refused.",
            .enum_values = "RerunOnFailure,Always,Once"}),

    Policy({.group = kGrowing,
            .key = "wait_for",
            .type = OptionType::kEnum,
            .default_text = "nomad",
            .documentation =
                "When a new VM counts as delivered: `created`, once it exists; `running`, once its "
                "instance has run; `nomad`, once its join is recorded.",
            .enum_values = "created,running,nomad"}),
    Policy({.group = kGrowing,
            .key = "join_timeout",
            .type = OptionType::kDuration,
            .default_text = "15m",
            .documentation = "A VM that has not been delivered by then is broken."}),
    Policy({.group = kGrowing,
            .key = "on_join_timeout",
            .type = OptionType::kEnum,
            .default_text = "delete",
            .documentation = "`delete` a broken VM, or `keep` it for inspection. While one is "
                             "kept, the pool does not grow.",
            .enum_values = "delete,keep"}),
    Policy({.group = kGrowing,
            .key = "max_scale_out",
            .type = OptionType::kCount,
            .default_note = "no limit",
            .documentation = "Maximum number of VMs created in one action."}),

    Policy({.group = kShrinking,
            .key = "host_volumes",
            .type = OptionType::kEnum,
            .default_text = "protect",
            .documentation = "With `protect`, a VM whose Nomad node holds a dynamic host volume is "
                             "never removed: the volume's data lives on the VM's disk.",
            .enum_values = "protect,ignore"}),
    Policy({.group = kShrinking,
            .key = "node_selector_strategy",
            .type = OptionType::kEnum,
            .default_text = "least_busy",
            .documentation =
                "Which nodes are removed first. Before the strategy applies: VMs annotated "
                "`delete-first`, stopped or lost ones, and those that have not joined yet.",
            .enum_values =
                "least_busy,newest_create_index,oldest_create_index,empty,empty_ignore_system"}),
    Policy({.group = kShrinking,
            .key = "node_drain_deadline",
            .type = OptionType::kSignedDuration,
            .default_text = "15m",
            .documentation = "How long a node may drain. `0`: no limit; negative: all allocations "
                             "are stopped immediately."}),
    Policy({.group = kShrinking,
            .key = "node_drain_ignore_system_jobs",
            .type = OptionType::kBool,
            .default_text = "false",
            .documentation = "A drain leaves system jobs running."}),
    Policy({.group = kShrinking,
            .key = "drain_grace",
            .type = OptionType::kDuration,
            .default_text = "5m",
            .documentation = "How long after the drain deadline allocations may still stop."}),
    Policy({.group = kShrinking,
            .key = "force_after_deadline",
            .type = OptionType::kBool,
            .default_text = "true",
            .documentation = "After deadline and grace the VM is deleted; with `false` its removal "
                             "is rolled back and its node enabled again."}),
    Policy({.group = kShrinking,
            .key = "node_purge",
            .type = OptionType::kBool,
            .default_text = "false",
            .documentation = "Purge the node from Nomad once its VM is deleted."}),
    Policy({.group = kShrinking,
            .key = "scale_in_wait",
            .type = OptionType::kBool,
            .default_text = "true",
            .documentation = "With `false`, Scale returns once every victim is marked and its "
                             "drain accepted; the rest runs in the background, so that growth "
                             "during a long drain can cancel removals."}),
    Policy({.group = kShrinking,
            .key = "max_scale_in",
            .type = OptionType::kCount,
            .default_note = "no limit",
            .documentation = "Maximum number of VMs removed in one action."}),

    Policy({.group = kRemediation,
            .key = "replace_unhealthy_after",
            .type = OptionType::kDuration,
            .default_note = "off",
            .documentation =
                "Opt-in: a VM that has joined, whose node is down or gone *and* that does not run, "
                "both for this time, is marked and removed; the next Scale creates a new one. This "
                "includes VMs that an operator stopped: annotate those `protect`."}),
    Policy({.group = kRemediation,
            .key = "max_unhealthy",
            .type = OptionType::kShare,
            .default_text = "20%",
            .documentation = "How many VMs may be removed as unhealthy at once: a number, or a "
                             "percentage of the pool, rounded up."}),
};

}  // namespace

std::span<const Option> PolicyOptions() { return kPolicyOptions; }

}  // namespace nomad_harvester::config
