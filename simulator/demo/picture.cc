// SPDX-License-Identifier: Apache-2.0
#include "picture.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_split.h"
#include "terminal.h"

namespace nomad_harvester::demo {
namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view kGreen = "32";
constexpr std::string_view kYellow = "33";
constexpr std::string_view kRed = "31";
constexpr std::string_view kDim = "2";
constexpr std::string_view kBold = "1";
constexpr std::string_view kPlain;

constexpr std::size_t kIndent = 2;
constexpr std::size_t kColumns = 7;
using Cells = std::array<std::string, kColumns>;
// The last column, whose text is folded, takes what is left of the line but needs this much.
constexpr std::array<std::size_t, kColumns> kWidths = {14, 13, 8, 12, 13, 10, 16};

std::string_view ColourOf(const std::string& state) {
  static const std::map<std::string, std::string_view> kColours = {
      {"Running", kGreen},       {"ready", kGreen},    {"eligible", kGreen},  {"draining", kYellow},
      {"ineligible", kYellow},   {"down", kRed},       {"Terminating", kRed}, {"marked", kYellow},
      {"Provisioning", kYellow}, {"Starting", kYellow}};
  const auto found = kColours.find(state);
  return found == kColours.end() ? kDim : found->second;
}

std::string Painted(std::string_view text, std::string_view colour, const Paper& paper) {
  if (!paper.colour || colour.empty() || text.empty()) return std::string(text);
  return "\x1b[" + std::string(colour) + "m" + std::string(text) + "\x1b[0m";
}

// `text` in lines of at most `width` columns; a word that is longer is broken, too.
Lines Folded(std::string_view text, std::size_t width, std::size_t indent) {
  Lines lines;
  for (std::string line :
       std::vector<std::string>(absl::StrSplit(cli::Fold(text, width, indent), '\n'))) {
    while (cli::DisplayWidth(line) > width) {
      std::size_t end = line.size();
      while (cli::DisplayWidth(std::string_view(line).substr(0, end)) > width) --end;
      lines.push_back(line.substr(0, end));
      line.erase(0, end);
    }
    lines.push_back(line);
  }
  return lines;
}

void AddText(std::string_view text, std::string_view colour, const Paper& paper, Lines* lines) {
  for (const std::string& line : Folded(text, paper.width, kIndent)) {
    lines->push_back(Painted(line, colour, paper));
  }
}

// Where the columns of a table begin. A column that begins left of the one before it is on the next
// line.
std::array<std::size_t, kColumns> Begins(const std::vector<Cells>& table, std::size_t width) {
  std::array<std::size_t, kColumns> begins{};
  std::size_t used = 0;
  for (std::size_t i = 0; i < kColumns; ++i) {
    std::size_t need = i + 1 == kColumns ? kWidths.at(i) : 0;
    if (need == 0) {
      for (const Cells& cells : table) need = std::max(need, cells.at(i).size());
    }
    if (used + need > width) used = std::min(used, kIndent);
    begins.at(i) = used;
    used += std::max(kWidths.at(i), need + 1);
  }
  return begins;
}

// The lines of one row. `colours`: of each cell.
void AddCells(const Cells& cells, const std::array<std::string_view, kColumns>& colours,
              const std::array<std::size_t, kColumns>& begins, const Paper& paper, Lines* lines) {
  std::string line;
  std::size_t used = 0;
  for (std::size_t i = 0; i < kColumns; ++i) {
    const std::size_t begin = begins.at(i);
    for (const std::string& part : Folded(cells.at(i), paper.width - begin, 0)) {
      if (part.empty()) continue;
      if (used > begin || (i > 0 && begin < begins.at(i - 1) && used > 0)) {
        lines->push_back(line);
        line.clear();
        used = 0;
      }
      line += std::string(begin - used, ' ') + Painted(part, colours.at(i), paper);
      used = begin + cli::DisplayWidth(part);
    }
  }
  lines->push_back(line);
}

Lines Table(const std::vector<Row>& rows, const Paper& paper) {
  std::vector<Cells> table = {
      {"VM", "PHASE", "MARK", "NOMAD NODE", "ELIGIBILITY", "DRAIN", "ALLOCATIONS"}};
  table.reserve(rows.size() + 1);
  for (const Row& row : rows) {
    table.push_back({row.name, row.phase, row.marked ? "marked" : "-", row.node, row.eligibility,
                     row.drain, row.work});
  }
  const std::array<std::size_t, kColumns> begins = Begins(table, paper.width);
  Lines lines;
  std::array<std::string_view, kColumns> colours;
  colours.fill(kDim);
  AddCells(table.front(), colours, begins, paper, &lines);
  for (auto row = table.begin() + 1; row != table.end(); ++row) {
    std::transform(row->begin(), row->end(), colours.begin(), ColourOf);
    colours.front() = colours.back() = kPlain;
    AddCells(*row, colours, begins, paper, &lines);
  }
  if (rows.empty()) lines.push_back(Painted("(none)", kDim, paper));
  return lines;
}

// The last lines of `from`, as many as there is place for.
Lines Last(const Lines& from, std::size_t place) {
  return {from.end() - static_cast<std::ptrdiff_t>(std::min(place, from.size())), from.end()};
}

void Append(const Lines& from, Lines* to) { to->insert(to->end(), from.begin(), from.end()); }

}  // namespace

std::vector<std::string> Draw(const Picture& picture, const Paper& paper) {
  Lines done;
  for (const std::string& line : picture.done) AddText(line, kPlain, paper, &done);
  Lines middle;
  AddText(picture.title, kBold, paper, &middle);
  middle.emplace_back();
  Append(Table(picture.rows, paper), &middle);
  Lines log;
  for (const std::string& line : picture.log) AddText(line, kDim, paper, &log);

  if (paper.height > 0) {
    if (middle.size() > paper.height) {
      const std::size_t missing = middle.size() - paper.height + 1;
      middle.resize(paper.height - 1);
      AddText("(" + std::to_string(missing) + " more)", kDim, paper, &middle);
    }
    done = Last(done, paper.height - middle.size());
    const std::size_t place = paper.height - middle.size() - done.size();
    log = Last(log, place > 0 ? place - 1 : 0);
  }
  Lines lines = std::move(done);
  Append(middle, &lines);
  if (!log.empty()) lines.emplace_back();
  Append(log, &lines);
  return lines;
}

}  // namespace nomad_harvester::demo
