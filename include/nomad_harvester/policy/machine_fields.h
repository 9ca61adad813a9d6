// SPDX-License-Identifier: Apache-2.0
// Policy keys with a value that goes to one place of each VM. Such a key needs only a row in the
// table: `config` reads it; `harvester` writes it into the VM, gives it precedence over a template,
// and hashes it. Thread-safe.
#ifndef NOMAD_HARVESTER_POLICY_MACHINE_FIELDS_H_
#define NOMAD_HARVESTER_POLICY_MACHINE_FIELDS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace nomad_harvester::policy {

// How the key's text is parsed. The value is a string, a boolean (kFlag), or a number: bytes
// (kQuantity), which are written to the VM as a quantity, or seconds.
enum class FieldType { kObjectName, kCpuModel, kChoice, kFlag, kQuantity, kSeconds };

enum class FieldPlace {
  kGuest,      // spec.template.spec of the VirtualMachine
  kLabel,      // of the VirtualMachine and of its template
  kAnnotation  // of the VirtualMachine
};

struct MachineField {
  std::string_view key;
  FieldType type = FieldType::kObjectName;
  std::string_view choices = {};  // of a kChoice, comma-separated
  FieldPlace place = FieldPlace::kGuest;
  // kGuest: a JSON pointer (RFC 6901); otherwise the name of the label or annotation.
  std::string_view path;
  // JSON text, such as true, {} or "auto" with its quotes, that is written to that place if the
  // flag is set. Nothing is written otherwise.
  std::string_view flag = "true";
  // The part of the template's hash to which it belongs; empty: it forms its own part.
  std::string_view part = {};
  // If the policy lacks the key, its value is taken from the VM template, and the preflight checks
  // it as if the policy had set it.
  bool taken_from_template = false;
};

// In the order of the reference.
std::span<const MachineField> MachineFields();

using MachineValue = std::variant<bool, std::int64_t, std::string>;
// By key; a key that the policy does not set has no entry.
using MachineValues = std::map<std::string, MachineValue, std::less<>>;

// Returns the value of a key that holds a string; empty if the key is absent.
std::string TextOf(const MachineValues& values, std::string_view key);

// Returns the part to which a member of the hashed document belongs, by the name that operators
// know: "data_disks" belongs to "disks".
std::string TemplatePartOf(std::string_view member);

// Returns all of them.
const std::set<std::string, std::less<>>& TemplatePartNames();

}  // namespace nomad_harvester::policy

#endif  // NOMAD_HARVESTER_POLICY_MACHINE_FIELDS_H_
