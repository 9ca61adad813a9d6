// SPDX-License-Identifier: Apache-2.0
// All keys, in the order of the reference and of problems, and lookups in them.
#include "nomad_harvester/config/option_table.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/policy/machine_fields.h"

namespace nomad_harvester::config {
namespace {

using enum OptionType;

// What an absent key means: a value, words for it in the reference, an error or nothing.
struct Default {
  constexpr Default(const char* text) : value(text) {}
  constexpr Default(std::string_view text, bool is_required) : words(text), required(is_required) {}

  std::string_view value = {};
  std::string_view words = {};
  bool required = false;
};
constexpr Default InWords(std::string_view words) { return {words, false}; }
constexpr Default kNone = InWords("");
constexpr Default kRequired = {"", true};
constexpr Default kUnlessTemplate = InWords("**required** without `vm_template`");

// Another key, without which a row's has no meaning.
struct Needs {
  std::string_view key = {};
};

// A row of the plugin's config block (SetConfig). Of an enumeration `values` are its names, else an
// example, for an option without a default.
constexpr Option Plugin(std::string_view group, std::string_view key, OptionType type,
                        const Default& absent, std::string_view environment,
                        std::string_view documentation, std::string_view values = {},
                        Needs needs = {}) {
  return {.section = Section::kPlugin,
          .group = group,
          .key = key,
          .type = type,
          .default_text = absent.value,
          .default_note = absent.words,
          .environment = environment,
          .required = absent.required,
          .documentation = documentation,
          .enum_values = type == kEnum ? values : "",
          .example = type == kEnum ? "" : values,
          .needs = needs.key};
}

// A row of a policy's target block (Status and Scale).
constexpr Option Policy(std::string_view group, std::string_view key, OptionType type,
                        const Default& absent, std::string_view documentation,
                        std::string_view values = {}, Needs needs = {}) {
  Option option = Plugin(group, key, type, absent, "", documentation, values, needs);
  option.section = Section::kPolicy;
  return option;
}

constexpr char kHarvester[] = "Harvester";
constexpr char kNomad[] = "Nomad";
constexpr char kWork[] = "How it works";
constexpr char kPool[] = "The pool";
constexpr char kNodes[] = "Nomad nodes";
constexpr char kMachines[] = "Virtual machines";
constexpr char kGrowing[] = "Scaling out";
constexpr char kShrinking[] = "Scaling in";
constexpr char kRemediation[] = "Replacing unhealthy VMs";

// An option of Nomad's own client: the agent injects it, perhaps empty, and the environment only
// fills what is absent (hashicorp/nomad-autoscaler:sdk/helper/nomad/config.go,
// hashicorp/nomad:api/api.go DefaultConfig).
constexpr Option Inherited(std::string_view key, OptionType type, std::string_view environment,
                           std::string_view documentation, std::string_view default_text = {},
                           std::string_view example = {}, Needs needs = {}) {
  return {.section = Section::kPlugin,
          .group = kNomad,
          .key = key,
          .type = type,
          .default_text = default_text,
          .environment = environment,
          .environment_wins = false,
          .empty_is_absent = type != kBool && type != kDuration,
          .documentation = documentation,
          .example = example,
          .needs = needs.key};
}

constexpr Option kOptions[] = {
    Plugin(kHarvester, "harvester_url", kUrl, InWords("the kubeconfig's server"), "HARVESTER_URL",
           "Base URL of the Kubernetes API: `https://VIP`, `https://VIP:6443` or "
           "`https://RANCHER/k8s/clusters/ID`; a path is kept. Required unless a kubeconfig is "
           "given; overrides its server. If scheme, host or port differ, the kubeconfig's "
           "credentials are not used.",
           "https://10.0.0.10:6443"),
    Plugin(kHarvester, "auth_token", kSecret, kNone, "HARVESTER_TOKEN",
           "Bearer token. Not together with `auth_token_file`.", "token-abcde:SECRET"),
    Plugin(kHarvester, "auth_token_file", kPath, kNone, "HARVESTER_TOKEN_FILE",
           "File with the bearer token, read again when it changes and after a 401. A missing "
           "file is a warning: it may be created later.",
           "/etc/nomad-autoscaler/harvester.token"),
    Plugin(kHarvester, "harvester_kubeconfig", kPath, kNone, "HARVESTER_KUBECONFIG",
           "Path of a kubeconfig, or several with `:` between them. Server, CA, token, token "
           "file, client certificate, `insecure-skip-tls-verify`, `tls-server-name`, `proxy-url`, "
           "`username` and `password` are used; an `exec` or `auth-provider` entry is an error, "
           "as is a CA together with `insecure-skip-tls-verify`, unless `harvester_ca_cert` or "
           "`harvester_skip_verify` replaces both.",
           "/etc/nomad-autoscaler/harvester.kubeconfig"),
    Plugin(kHarvester, "harvester_kubeconfig_context", kString, InWords("its current context"), "",
           "Context of the kubeconfig.", "lab", Needs{"harvester_kubeconfig"}),
    Plugin(kHarvester, "harvester_ca_cert", kPath, InWords("the system's CAs"), "",
           "PEM file of the CAs for Harvester's certificate. Otherwise: `SSL_CERT_FILE`, "
           "`SSL_CERT_DIR`, the well-known bundles of Debian, Alpine, SUSE and RHEL; none of "
           "these is an error. Overrides a kubeconfig's CA and its `insecure-skip-tls-verify`.",
           "/etc/nomad-autoscaler/harvester-ca.pem"),
    Plugin(kHarvester, "harvester_client_cert", kPath, kNone, "",
           "PEM file with a client certificate.", "/etc/nomad-autoscaler/client.pem",
           Needs{"harvester_client_key"}),
    Plugin(kHarvester, "harvester_client_key", kPath, kNone, "", "PEM file with its key.",
           "/etc/nomad-autoscaler/client-key.pem", Needs{"harvester_client_cert"}),
    Plugin(kHarvester, "harvester_tls_server_name", kString, InWords("the URL's host"), "",
           "Name that Harvester's certificate must contain instead.", "harvester.example.org"),
    Plugin(kHarvester, "harvester_skip_verify", kBool, "false", "",
           "Accept any certificate: the token can be intercepted."),

    Inherited("nomad_address", kUrl, "NOMAD_ADDR,NOMAD_UNIX_ADDR",
              "Address of Nomad's HTTP API: `http://`, `https://` or `unix:///path`.",
              "http://127.0.0.1:4646"),
    Inherited("nomad_region", kString, "NOMAD_REGION",
              "Region of the pools' nodes; absent: that of the Nomad agent at `nomad_address`.", "",
              "global"),
    Inherited("nomad_namespace", kString, "NOMAD_NAMESPACE",
              "Namespace sent with requests; nodes have none.", "", "default"),
    Inherited("nomad_token", kSecret, "NOMAD_TOKEN",
              "ACL token: node write, and `read-job` in every namespace.", "", "SECRET_ID"),
    {.group = kNomad,
     .key = "nomad_token_file",
     .type = kPath,
     .environment = "NOMAD_TOKEN_FILE",
     .empty_is_absent = true,
     .documentation =
         "File with the ACL token, read again when it changes and after a 401 or 403. Takes "
         "precedence over `nomad_token`. A missing file is a warning.",
     .example = "/secrets/nomad_token"},
    Inherited(
        "nomad_http-auth", kSecret, "NOMAD_HTTP_AUTH",
        "HTTP basic authentication, `user`, `user:password` or `:password`, for a proxy in front "
        "of Nomad.",
        "", "user:password"),
    Inherited("nomad_ca-cert", kPath, "NOMAD_CACERT",
              "PEM file of the CAs for Nomad's certificate.", "", "/etc/nomad.d/ca.pem"),
    Inherited("nomad_ca-path", kPath, "NOMAD_CAPATH", "Directory of such files.", "",
              "/etc/nomad.d/ca"),
    Inherited("nomad_client-cert", kPath, "NOMAD_CLIENT_CERT",
              "PEM file with a client certificate.", "", "/etc/nomad.d/client.pem",
              Needs{"nomad_client-key"}),
    Inherited("nomad_client-key", kPath, "NOMAD_CLIENT_KEY", "PEM file with its key.", "",
              "/etc/nomad.d/client-key.pem", Needs{"nomad_client-cert"}),
    Inherited("nomad_tls-server-name", kString, "NOMAD_TLS_SERVER_NAME",
              "Name that Nomad's certificate must contain.", "", "server.global.nomad"),
    Inherited("nomad_skip-verify", kBool, "NOMAD_SKIP_VERIFY", "Accept any certificate of Nomad.",
              "false"),
    Inherited("nomad_block-query-wait-time", kDuration, "",
              "Longest wait of a blocking query for Nomad's nodes. The agent injects its own "
              "value, by default `5m0s`; no query waits longer than `5s`.",
              "5s"),
    Inherited("nomad_config_inherit", kBool, "",
              "Read by the agent: with `false` it injects none of the keys of this table.", "true"),

    Plugin(kWork, "request_timeout", kDuration, "10s", "",
           "Limit of one HTTP request; it never outlives the deadline of the agent's call."),
    Plugin(kWork, "max_concurrency", kCount, "10", "",
           "API requests in flight per pool, 1000 at most. The Lease's renewal and the lists of a "
           "Status call are not limited."),
    Plugin(kWork, "events", kBool, "true", "",
           "Write a Kubernetes Event on a VM for what is done with it, and why. If the token may "
           "not, one warning is logged for each pool."),
    Plugin(kWork, "metrics_address", kString, InWords("off"), "",
           "`IP:PORT`, `[IPv6]:PORT` or `localhost:PORT`: serve Prometheus' `GET /metrics` there "
           "([metrics.md](metrics.md)), to anybody who reaches the port. Each `target` block is a "
           "process of its own and needs its own port.",
           "127.0.0.1:9464"),
    Plugin(kWork, "log_level", kEnum,
           InWords("`debug` under the agent, which filters; `info` in dev mode"), "",
           "Lowest level that is written.", "trace,debug,info,warn,error"),

    Policy(kPool, "node_group_name", kString, kRequired,
           "Name of the pool, a label of its VMs. A DNS label of at most 40 characters.", "batch"),
    Policy(kPool, "namespace", kString, "default",
           "Harvester namespace of the VMs. Pool names are unique within it."),
    Policy(kPool, "dry-run", kBool, "false",
           "The agent's own key. With exactly `true` plans are logged with names, victims and "
           "reasons, and nothing is changed."),

    Policy(kNodes, "node_class", kString, kNone,
           "Node class of the pool's nodes; `autoscaler-default-pool` selects the nodes without "
           "class. At least one of `node_class`, `datacenter` and `node_pool` is required; a node "
           "must match all that are given.",
           "batch"),
    Policy(kNodes, "datacenter", kString, kNone, "Nomad datacenter of the pool's nodes.", "dc1"),
    Policy(kNodes, "node_pool", kString, kNone, "Nomad node pool of the pool's nodes.", "default"),
    Policy(kNodes, "node_attribute", kString, "unique.hostname",
           "Node attribute, or `meta.KEY`, that contains the VM's name. Host names are compared "
           "by their first label, ignoring case."),
    Policy(kNodes, "node_filter_ignore_init", kBool, "false",
           "Initializing nodes do not make the pool unready."),
    Policy(kNodes, "node_filter_ignore_drain", kBool, "false",
           "Draining nodes do not make the pool unready."),
    Policy(kNodes, "node_filter_ignore_ineligible", kBool,
           InWords("`false` for Status, `true` for scaling in"),
           "Ready but ineligible nodes are members of the pool."),
    Policy(kNodes, "publish_host", kBool, "false",
           "Write a VM's Harvester host into its Nomad node's metadata, `harvester_host` and "
           "`harvester_zone`, at the join and after each live migration."),

    Policy(
        kMachines, "vm_template", kString, kNone,
        "`NAMESPACE/NAME` or `NAMESPACE/NAME:VERSION`: a Harvester VirtualMachineTemplate as the "
        "base of the VMs ([below](#virtual-machine-templates)), by default in its default "
        "version. The keys of this table take precedence over it.",
        "default/nomad-worker:3"),
    Policy(kMachines, "image", kString, kUnlessTemplate,
           "`NAMESPACE/IMAGE`: the resource name of a Harvester image, otherwise its display "
           "name; exactly one image must match.",
           "default/ubuntu-24.04"),
    Policy(kMachines, "cpu_request", kCount, kUnlessTemplate,
           "Cores of a VM, its CPU limit. Harvester derives the request from its overcommit "
           "settings.",
           "4"),
    Policy(kMachines, "memory_request", kQuantity, kUnlessTemplate,
           "Memory of a VM, its limit; at least `64Mi` (a number without a suffix is bytes). The "
           "request is derived likewise.",
           "8Gi"),
    Policy(kMachines, "disk_size", kQuantity,
           InWords("the larger of `10Gi` and the image's virtual size"),
           "Size of the root disk; at least `1Mi` (a number without a suffix is bytes). Smaller "
           "than the image's virtual size is an error.",
           "40Gi"),
    Policy(kMachines, "data_disks", kList, kNone,
           "Empty volumes beside the root disk, in the order of the guest's disks: "
           "`SIZE[@STORAGECLASS][:rwo]`; without a class, Harvester's default one. They are "
           "removed with their VM. `:rwo` makes a volume ReadWriteOnce, which LVM's class needs: "
           "its VM cannot be live-migrated, which a warning says.",
           "100Gi@fast,20Gi"),
    Policy(kMachines, "networks", kList, kUnlessTemplate,
           "Networks in the order of the interfaces: `NAMESPACE/NETWORK`, or `management` for "
           "the pod network (masquerade).",
           "default/vlan10"),
    Policy(kMachines, "user_data", kString, kNone,
           "cloud-init user data, a [template](#templates). The agent logs it with the policy's "
           "block at every evaluation: prefer `user_data_file`. At most one of the two; without "
           "either, the user data is `#cloud-config`.",
           "#cloud-config"),
    Policy(kMachines, "user_data_file", kPath, kNone,
           "File with such a template, on the agent's machine.",
           "/etc/nomad-autoscaler/cloud-init.yaml"),
    Policy(kMachines, "network_data", kString, kNone,
           "cloud-init network data, version 1 or 2, a template. At most one of the two; without "
           "either, cloud-init configures DHCP.",
           "{version: 2, ethernets: {enp1s0: {dhcp4: true}}}"),
    Policy(kMachines, "network_data_file", kPath, kNone,
           "File with such a template, on the agent's machine.",
           "/etc/nomad-autoscaler/network.yaml"),
    Policy(
        kMachines, "nomad_intro_token", kEnum, "off",
        "A [client introduction token](#introduction-tokens) of Nomad 1.11 and newer for each new "
        "VM, as `{{nomad_intro_token}}` in its user data.",
        "off,auto,required"),
    Policy(kMachines, "ssh_keys", kList, kNone,
           "`NAMESPACE/KEYPAIR` of Harvester: public keys merged into the user data, which must "
           "then be `#cloud-config` or absent.",
           "default/operators"),
    Policy(kMachines, "name_prefix", kString, InWords("`node_group_name`"),
           "VM names are `PREFIX-RANDOM`. A DNS label of at most 41 characters; the random part "
           "has 8.",
           "batch"),
    Policy(kMachines, "labels", kMap, kNone,
           "Labels of the VMs. Refused are `nomad-harvester-autoscaler/…`, `harvesterhci.io/…`, "
           "`network.harvesterhci.io/…`, `kubevirt.io/…`, `app.kubernetes.io/managed-by`.",
           "team=data,environment=production"),
    Policy(kMachines, "annotations", kMap, kNone,
           "Annotations of the VMs; the same keys are refused.", "example.org/owner=data"),
    Policy(kMachines, "tags", kMap, kNone,
           "Harvester's tags: each becomes the label `tag.harvesterhci.io/KEY`.",
           "nomad-pool=batch"),
    Policy(kMachines, "firmware", kEnum, InWords("`bios`, or the template's"),
           "`uefi-secure` is UEFI with secure boot, which the image must support. UEFI's "
           "variables are not kept across a restart.",
           "bios,uefi,uefi-secure"),
    Policy(kMachines, "host_devices", kList, kNone,
           "Devices of the host, passed through: `RESOURCE[:COUNT]`, with the resource name of "
           "Harvester's PCI or USB device. Such a VM cannot be live-migrated, which a warning "
           "says.",
           "intel.com/X710:2"),
    Policy(kMachines, "gpus", kList, kNone,
           "GPUs and vGPUs likewise. Harvester 1.7 and older gets them as `gpus`, newer ones as "
           "`hostDevices`.",
           "nvidia.com/GA102GL_A10:1"),
    Policy(kMachines, "host_spread", kEnum, "preferred",
           "Whether the pool's VMs are kept apart on different Harvester hosts. With `required` "
           "there are never more VMs than hosts, and they can block maintenance and upgrades of "
           "hosts, which a warning says.",
           "required,preferred,off"),
    Policy(kMachines, "node_selector", kMap, kNone,
           "Labels that the Harvester host of a VM must have (required node affinity). Keys "
           "`network.harvesterhci.io/…` are refused: Harvester sets them itself.",
           "gpu.example.org/model=a10"),
    Policy(kMachines, "availability_zones", kList, kNone,
           "Zones in which the VMs may run: values of the hosts' label "
           "`topology.kubernetes.io/zone` (required node affinity).",
           "zone1,zone2"),
    Policy(
        kMachines, "evenly_split_zones", kBool, "true",
        "Give each VM one of `availability_zones` (`{{zone}}`), and keep the zones even. A zone "
        "in which a VM could not start gets no new ones for two hours, or until one joins there, "
        "while others can. With `false` each VM may run in any of them.",
        "", Needs{"availability_zones"}),
    Policy(kMachines, "run_strategy", kEnum, InWords("`RerunOnFailure`, or the template's"),
           "KubeVirt's run strategy. Its other values never boot a VM and are refused.",
           "RerunOnFailure,Always,Once"),

    Policy(kGrowing, "ready_drivers", kList, kNone,
           "Task drivers that a new VM's node must have, detected and healthy, to count as ready.",
           "docker,exec"),
    Policy(kGrowing, "join_timeout", kDuration, "15m",
           "A new VM whose node is not ready by then is broken. Until then the pool is not ready."),
    Policy(kGrowing, "on_join_timeout", kEnum, "delete",
           "`delete` a broken VM, or `keep` it for inspection. While one is kept, the pool does "
           "not grow.",
           "delete,keep"),
    Policy(kGrowing, "max_scale_out", kCount, InWords("no limit"),
           "Maximum number of VMs created in one action.", "5"),

    Policy(kShrinking, "host_volumes", kEnum, "protect",
           "With `protect`, a VM whose Nomad node holds a dynamic host volume is never removed: "
           "the volume's data lives on the VM's disk.",
           "protect,ignore"),
    Policy(kShrinking, "node_selector_strategy", kEnum, "least_busy",
           "Which nodes are removed first, after VMs annotated `delete-first`, stopped or lost "
           "ones, those that are not ready, drifted ones (`replace_drifted`), and those on "
           "cordoned hosts (an optional right).",
           "least_busy,newest_create_index,oldest_create_index,empty,empty_ignore_system"),
    Policy(kShrinking, "deletion_holds", kList, kNone,
           "Names of annotations `nomad-harvester-autoscaler/hold-NAME` that each new VM gets. A "
           "drained VM is not deleted before a program of yours has removed them: one that takes "
           "back what the VM has elsewhere, such as its place in a VPN.",
           "tailscale,licence"),
    Policy(
        kShrinking, "hold_timeout", kDuration, "15m",
        "How long after its drain a VM waits for that. Then it is deleted, with a warning and an "
        "Event."),
    Policy(kShrinking, "replace_drifted", kEnum, "on_scale_in",
           "VMs made of something else than the policy describes now, such as an older image: with "
           "`on_scale_in` they are removed first, after those that are not ready; with `rolling` "
           "also replaced by new ones, as `max_surge` allows; with `off` removed like all others.",
           "off,on_scale_in,rolling"),
    Policy(kShrinking, "drift_ignore", kList, kNone,
           "Parts in which a VM may differ without being called drifted, by the names that "
           "`nomad-harvester status -o wide` shows.",
           "tags,labels"),
    Policy(kShrinking, "node_drain_deadline", kSignedDuration, "15m",
           "How long a node may drain. `0`: no limit; negative: all allocations are stopped "
           "immediately."),
    Policy(kShrinking, "node_drain_ignore_system_jobs", kBool, "false",
           "A drain leaves system jobs running."),
    Policy(kShrinking, "drain_grace", kDuration, "5m",
           "How long after the drain deadline allocations may still stop."),
    Policy(kShrinking, "force_after_deadline", kBool, "true",
           "After deadline and grace the VM is deleted; with `false` its removal is rolled back "
           "and its node enabled again."),
    Policy(kShrinking, "node_purge", kBool, "false",
           "Purge the node from Nomad once its VM is deleted."),
    Policy(kShrinking, "max_scale_in", kCount, InWords("no limit"),
           "Maximum number of VMs removed in one action.", "2"),
    Policy(
        kShrinking, "scale_in_fit", kEnum, "report",
        "Whether the work of the chosen VMs has a place on the pool's other nodes: with `report` "
        "the log and `nomad-harvester plan` say what may wait; with `require` only VMs are "
        "removed whose work has one.",
        "report,require"),

    Policy(kRemediation, "on_host_maintenance", kEnum, "report",
           "VMs on a cordoned Harvester host: `report` shows them in `nomad-harvester status`; "
           "`evacuate` also replaces those that cannot migrate, as `max_surge` allows, with the "
           "optional right to list hosts.",
           "report,evacuate"),
    Policy(kRemediation, "expire_after", kDuration, InWords("off"),
           "VMs older than this, an hour or more, are replaced by new ones, as `max_surge` "
           "allows; up to a tenth of the time earlier, so that VMs made together do not expire "
           "together.",
           "720h"),
    Policy(kRemediation, "replacement_window", kString, InWords("always"),
           "When drifted and expired VMs may be replaced, in UTC: five cron fields (minute, hour, "
           "day of month, month, day of week) and how long it stays open, `1m` to `168h`. A field "
           "is `*`, or a list of numbers, names such as `mon`, ranges and steps: `1,15`, `1-5`, "
           "`*/5`. If both days are restricted, one of them is enough. `nomad-harvester replace` "
           "does not wait for it, and a replacement that has begun goes on when it closes.",
           "0 2 * * 1-5 4h"),
    Policy(kRemediation, "max_surge", kCount, "1",
           "How many VMs are replaced at a time, each after a new one is ready. The first new VM "
           "of a changed spec comes alone. `0` is `max_unavailable = \"1\"`.",
           "3"),
    Policy(kRemediation, "max_unavailable", kCount, "0",
           "How many VMs are replaced at a time in the room that they have, instead of "
           "`max_surge`: each is drained and removed before the new one starts, which was created "
           "before, so that a refusal by Harvester costs no VM.",
           "1"),
    Policy(kRemediation, "replace_unhealthy_after", kDuration, InWords("off"),
           "Opt-in: a VM whose node was ready, and was then not ready for this time (down, "
           "disconnected, initializing, gone), whether the VM runs or not, is replaced: once its "
           "new VM exists, it is marked, drained if Nomad can, and removed. Annotate VMs that you "
           "stop with `protect`.",
           "30m"),
    Policy(kRemediation, "max_unhealthy", kShare, "20%",
           "How many VMs may be removed as unhealthy at once: a number, or a percentage of the "
           "pool, rounded up.",
           "", Needs{"replace_unhealthy_after"}),
};

OptionType TypeOf(policy::FieldType type) {
  switch (type) {
    case policy::FieldType::kChoice:
      return kEnum;
    case policy::FieldType::kFlag:
      return kBool;
    case policy::FieldType::kQuantity:
      return kQuantity;
    case policy::FieldType::kSeconds:
      return kDuration;
    case policy::FieldType::kObjectName:
    case policy::FieldType::kCpuModel:
      break;
  }
  return kString;
}

// The fields of a VM end the group of the machines.
std::vector<Option> WithMachineFields() {
  std::vector<Option> all(std::begin(kOptions), std::end(kOptions));
  auto end = std::find_if(all.begin(), all.end(),
                          [](const Option& option) { return option.group == kGrowing; });
  for (const policy::MachineField& field : policy::MachineFields()) {
    end = all.insert(
        end, Policy(kMachines, field.key, TypeOf(field.type), InWords(field.absent),
                    field.documentation, field.choices.empty() ? field.example : field.choices));
    ++end;
  }
  return all;
}

// Longer names are not typing errors, and the time for the distance grows with the length.
constexpr std::size_t kMaxCompared = 64;
// Keys of policies that were written for earlier versions.
constexpr std::string_view kRetired[] = {"scale_in_wait", "scale_timeout", "wait_for"};

}  // namespace

std::span<const Option> OptionTable() {
  static const auto* const kAll = new std::vector<Option>(WithMachineFields());
  return *kAll;
}

std::span<const Option> OptionsOf(Section section) {
  const std::span<const Option> all = OptionTable();
  const auto policy = std::find_if(all.begin(), all.end(), [](const Option& option) {
    return option.section == Section::kPolicy;
  });
  const auto of_plugin = static_cast<std::size_t>(policy - all.begin());
  return section == Section::kPlugin ? all.first(of_plugin) : all.subspan(of_plugin);
}

const Option* FindOption(Section section, std::string_view key) {
  const std::span<const Option> options = OptionsOf(section);
  const auto found = std::find_if(options.begin(), options.end(),
                                  [key](const Option& option) { return option.key == key; });
  return found == options.end() ? nullptr : &*found;
}

std::optional<std::string> NearestKey(std::string_view key, const std::vector<std::string>& keys) {
  constexpr std::size_t kShortest = 3;
  std::optional<std::string> nearest = base::NearestName(key, keys);
  if (nearest.has_value() || key.size() < kShortest) return nearest;
  std::vector<std::string> begun;
  std::vector<std::string> similar;
  for (const std::string& each : keys) {
    if (each.starts_with(key)) begun.push_back(each);
    const bool is_similar =
        each.find(key) != std::string::npos || key.find(each) != std::string_view::npos;
    if (is_similar) similar.push_back(each);
  }
  if (begun.size() == 1) return begun.front();
  if (similar.size() == 1) return similar.front();
  return std::nullopt;
}

std::string UnknownKeyHint(Section section, std::string_view key) {
  const bool in_plugin = section == Section::kPlugin;
  if (!in_plugin &&
      std::find(std::begin(kRetired), std::end(kRetired), key) != std::end(kRetired)) {
    return "remove it: a Scale is accepted within a minute, and the background does the rest (C16)";
  }
  if (FindOption(in_plugin ? Section::kPolicy : Section::kPlugin, key) != nullptr) {
    return in_plugin ? "it belongs in the policy's target block"
                     : "it belongs in the plugin's config of the agent";
  }
  key = key.substr(0, kMaxCompared);
  std::vector<std::string> known;
  for (const Option& option : OptionsOf(section)) known.emplace_back(option.key);
  const std::optional<std::string> typo = NearestKey(key, known);
  if (typo) return "did you mean " + *typo + "?";
  std::vector<std::size_t> distances(known.size());
  std::transform(known.begin(), known.end(), distances.begin(),
                 [key](const std::string& option) { return base::EditDistance(key, option); });
  const auto nearest = std::min_element(distances.begin(), distances.end()) - distances.begin();
  return "the nearest known key is " + known[static_cast<std::size_t>(nearest)];
}

}  // namespace nomad_harvester::config
