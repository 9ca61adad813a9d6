// SPDX-License-Identifier: Apache-2.0
// Reads selected members of large JSON documents into records, piece by piece while they arrive.
// Neither the whole text nor a tree of it is ever in memory.
//
//   const JsonFields<Node>& NodeFields() {
//     static const auto* const kFields = new JsonFields<Node>({
//         {"ID", &SetText<&Node::id>},
//         {"Status", [](Node& node, const JsonEvent& event) { ... }}});
//     return *kFields;
//   }
//
// A path names members, separated by dots; "*" is any member that no other path names at that
// level. A path does not mention arrays: it applies to each of their elements. A member that is
// missing, or has a type that its function does not expect, leaves the record unchanged, because
// the data that servers send depends on their version. The function of the empty path is called
// last, once, to derive what the record has besides.
#ifndef NOMAD_HARVESTER_BASE_JSON_FIELDS_H_
#define NOMAD_HARVESTER_BASE_JSON_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::base {

// One value at a path. Views are valid during the call.
struct JsonEvent {
  // kObject and kArray precede their members; kEnd follows them.
  enum class Kind { kNull, kBool, kInt, kFloat, kText, kObject, kArray, kEnd };
  Kind kind = Kind::kNull;
  bool boolean = false;      // kBool
  std::int64_t integer = 0;  // kInt; a larger number is kFloat
  std::string_view text{};   // kText
  std::string_view name{};   // the member that the path's last "*" stands for
};

// Receives a value with the number of its path in a JsonPaths. Returns false to stop the parser.
using JsonSink = std::function<bool(int path, const JsonEvent& event)>;

// The tree of a set of paths. Immutable, thread-safe.
class JsonPaths {
 public:
  // The number of paths[i] is i. The empty path is the document itself.
  explicit JsonPaths(const std::vector<std::string>& paths);

  struct Level {
    int path = -1;  // the path that ends here; -1: none
    int any = -1;   // the level of "*"; -1: none
    std::vector<std::pair<std::string, int>> members{};
  };
  // levels()[0] is the level of the document itself.
  const std::vector<Level>& levels() const { return levels_; }
  // Returns the level of a member, or -1. Sets `*is_any` if only "*" matches the member.
  int Find(int level, std::string_view member, bool* is_any) const;

 private:
  std::vector<Level> levels_;
};

// Passes on the values of a document that is in memory, as the parser does those of its text. The
// sink's result counts for nothing.
void ReadJson(const nlohmann::json& value, const JsonPaths& paths, JsonSink sink);

// Parses a document in pieces of any size. Rejects documents nested deeper than 200 levels. `paths`
// must outlive it. For one thread.
class JsonPushParser {
 public:
  JsonPushParser(const JsonPaths& paths, JsonSink sink);
  ~JsonPushParser();
  JsonPushParser(const JsonPushParser&) = delete;
  JsonPushParser& operator=(const JsonPushParser&) = delete;

  // After an error, or after the sink has stopped the parser, pieces are ignored.
  void Write(std::string_view piece);
  // Call it after the last piece. INVALID_ARGUMENT "<what> is not JSON: …" with the position, never
  // the content; OK if the sink has stopped the parser.
  absl::Status Finish(std::string_view what);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

// The paths that are read into a record, each with the function that stores its value.
template <typename T>
class JsonFields {
 public:
  using Set = void (*)(T& record, const JsonEvent& event);
  struct Field {
    std::string_view path;
    Set set;
  };
  explicit JsonFields(const std::vector<Field>& fields) : paths_(PathsOf(fields)), tree_(paths_) {
    for (const Field& field : fields) {
      if (field.path.empty()) {
        complete_ = field.set;
      } else {
        sets_.push_back(field.set);
      }
    }
  }

  const std::vector<std::string>& paths() const { return paths_; }
  void Apply(int field, const JsonEvent& event, T& record) const {
    sets_[static_cast<std::size_t>(field)](record, event);
  }
  void Complete(T& record) const {
    if (complete_ != nullptr) complete_(record, {});
  }

  // Reads a record from a value that is already in memory: for single objects.
  T Read(const nlohmann::json& value) const {
    T record;
    ReadJson(value, tree_, [&](int field, const JsonEvent& event) {
      Apply(field, event, record);
      return true;
    });
    Complete(record);
    return record;
  }

 private:
  static std::vector<std::string> PathsOf(const std::vector<Field>& fields) {
    std::vector<std::string> paths;
    paths.reserve(fields.size());
    for (const Field& field : fields) {
      if (!field.path.empty()) paths.emplace_back(field.path);
    }
    return paths;
  }

  const std::vector<std::string> paths_;
  const JsonPaths tree_;
  std::vector<Set> sets_;
  Set complete_ = nullptr;
};

template <typename Member>
struct MemberOf;
template <typename T, typename V>
struct MemberOf<V T::*> {
  using Record = T;
};
template <auto kMember>
using RecordOf = typename MemberOf<decltype(kMember)>::Record;

template <auto kMember, typename Record = RecordOf<kMember>>
void SetText(Record& record, const JsonEvent& event) {
  if (event.kind == JsonEvent::Kind::kText) record.*kMember = event.text;
}
template <auto kMember, typename Record = RecordOf<kMember>>
void SetBool(Record& record, const JsonEvent& event) {
  if (event.kind == JsonEvent::Kind::kBool) record.*kMember = event.boolean;
}
// For a path that ends with "*": stores the text in a map, under its member's name.
template <auto kMember, typename Record = RecordOf<kMember>>
void PutText(Record& record, const JsonEvent& event) {
  if (event.kind != JsonEvent::Kind::kText) return;
  (record.*kMember).insert_or_assign(std::string(event.name), std::string(event.text));
}

// Receives the elements of a list one by one.
class JsonElements {
 public:
  virtual ~JsonElements() = default;
  // Drops all elements, because a document begins or restarts.
  virtual void Restart() = 0;
  virtual void Begin() = 0;
  virtual void Take(int path, const JsonEvent& event) = 0;
  // Called after the last member of an element. An error stops reading.
  virtual absl::Status End() = 0;
};

// Collects elements as records. `finish`, if given, may refuse a record, which is then converted to
// a T and kept.
template <typename Record, typename T = Record>
class JsonRecords final : public JsonElements {
 public:
  using Finish = absl::Status (*)(Record& record);
  explicit JsonRecords(const JsonFields<Record>& fields, Finish finish = nullptr)
      : fields_(fields), finish_(finish) {}

  void Restart() override { records_.clear(); }
  void Begin() override { record_ = Record(); }
  void Take(int path, const JsonEvent& event) override { fields_.Apply(path, event, record_); }
  absl::Status End() override {
    fields_.Complete(record_);
    absl::Status finished = finish_ == nullptr ? absl::OkStatus() : finish_(record_);
    if (finished.ok()) records_.emplace_back(std::move(record_));
    return finished;
  }

  // The records so far, which are forgotten here.
  std::vector<T> TakeAll() { return std::exchange(records_, {}); }

 private:
  const JsonFields<Record>& fields_;
  const Finish finish_;
  Record record_;
  std::vector<T> records_;
};

// Reads documents that contain a list of objects, one after another, each in pieces. For one
// thread.
class JsonListReader final {
 public:
  // Limits memory use: a few bytes of a reply can become hundreds in a record.
  static constexpr std::size_t kMaxElements = 200'000;

  // `list` is the path of the list; if it is empty, the document is the list. `paths` are relative
  // to an element. `beside` are paths of strings outside the list. `elements` must outlive this.
  JsonListReader(const std::string& list, const std::vector<std::string>& paths,
                 JsonElements& elements, const std::vector<std::string>& beside = {});

  // Begins a document, and drops any unfinished earlier one.
  void Begin();
  void Write(std::string_view piece);
  // Call it after the last piece. INVALID_ARGUMENT, "<what> …": the document is not JSON, it has no
  // list or one with more than kMaxElements, an element is not an object, or a value at `beside` is
  // neither a string nor null. An element's error is returned unchanged. `null` counts as an empty
  // list, because Go writes a nil slice as null.
  absl::Status Finish(std::string_view what);
  // Returns the string at beside[i]; empty if it is missing or null.
  const std::string& beside(std::size_t i) const { return texts_[i]; }

 private:
  bool Take(int path, const JsonEvent& event);
  bool TakeList(const JsonEvent& event);
  bool Refuse(std::string_view problem);

  const int element_paths_;
  const std::vector<std::string> beside_;
  const JsonPaths paths_;
  JsonElements& elements_;
  std::optional<JsonPushParser> parser_;
  std::vector<std::string> texts_;  // at `beside_`
  std::string problem_;             // with the document
  absl::Status refused_;            // by `elements_`
  int open_ = 0;                    // 1: in the list, 2: in one of its elements
  std::size_t count_ = 0;
  bool has_list_ = false;
};

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_JSON_FIELDS_H_
