// SPDX-License-Identifier: Apache-2.0
// Lists of both APIs, as they arrive: the input's first byte decides how long the pieces are.
#ifndef NOMAD_HARVESTER_TEST_FUZZ_LISTS_H_
#define NOMAD_HARVESTER_TEST_FUZZ_LISTS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/json_fields.h"

#include "fuzz/fuzz.h"

namespace nomad_harvester::fuzz {

template <typename T>
struct List {
  absl::Status status;
  std::vector<T> records;
  std::vector<std::string> beside;
};

// `seed` 0: one piece. Otherwise pieces of 1 to 16 bytes, or up to 1 KiB, by a generator that it
// seeds.
template <typename Record>
List<Record> ReadList(std::string_view text, std::uint8_t seed, const std::string& list,
                      const std::vector<std::string>& beside,
                      const base::JsonFields<Record>& fields,
                      typename base::JsonRecords<Record>::Finish finish) {
  base::JsonRecords<Record> records(fields, finish);
  base::JsonListReader reader(list, fields.paths(), records, beside);
  reader.Begin();
  const std::size_t longest = seed % 2 == 0 ? 16 : 1024;
  std::uint32_t random = seed;
  while (seed != 0 && !text.empty()) {
    random = random * 1664525U + 1013904223U;
    const std::size_t length = std::min(text.size(), 1 + (random >> 16U) % longest);
    reader.Write(std::string(text.substr(0, length)));  // a copy: what is kept of it is an error
    text.remove_prefix(length);
  }
  if (!text.empty()) reader.Write(text);
  List<Record> result;
  result.status = reader.Finish("the list");
  result.records = records.TakeAll();
  for (std::size_t i = 0; i < beside.size(); ++i) result.beside.push_back(reader.beside(i));
  return result;
}

// The pieces make no difference. `same` compares two records.
template <typename Record, typename Same>
void CheckList(std::string_view input, const std::string& list,
               const std::vector<std::string>& beside, const base::JsonFields<Record>& fields,
               typename base::JsonRecords<Record>::Finish finish, const Same& same) {
  if (input.empty()) return;
  const auto seed = static_cast<std::uint8_t>(input.front());
  const std::string_view text = input.substr(1);
  const auto whole = ReadList<Record>(text, 0, list, beside, fields, finish);
  const auto pieces = ReadList<Record>(text, seed, list, beside, fields, finish);
  Require(whole.status.code() == pieces.status.code(), "pieces are refused as the whole text is");
  if (!whole.status.ok()) return;
  Require(whole.beside == pieces.beside, "pieces have the same texts beside the list");
  Require(std::equal(whole.records.begin(), whole.records.end(), pieces.records.begin(),
                     pieces.records.end(), same),
          "pieces have the same records");
}

}  // namespace nomad_harvester::fuzz

#endif  // NOMAD_HARVESTER_TEST_FUZZ_LISTS_H_
