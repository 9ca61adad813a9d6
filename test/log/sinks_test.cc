// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/log/sinks.h"

#include <array>
#include <csignal>
#include <cstddef>
#include <fcntl.h>
#include <memory>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::log {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;

class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    CloseReader();
    CloseWriter();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void CloseReader() { Close(&ends_[0]); }
  void CloseWriter() { Close(&ends_[1]); }
  void DoNotBlock() { ASSERT_EQ(fcntl(writer(), F_SETFL, O_NONBLOCK), 0); }

  // Reads until the writer's end is closed.
  std::string ReadAll() {
    std::string text;
    std::array<char, 4096> buffer;
    ssize_t got = 0;
    while ((got = read(reader(), buffer.data(), buffer.size())) > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  static void Close(int* fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }

  std::array<int, 2> ends_{-1, -1};
};

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// SIGPIPE is ignored, as in the program; otherwise the tests of closed pipes would end the process.
class SinksTest : public testing::Test {
 protected:
  SinksTest() { std::signal(SIGPIPE, SIG_IGN); }
};

TEST_F(SinksTest, P3_one_line_of_json_per_record) {
  Pipe pipe;
  const Logger logger(MakeHclogSinkOn(pipe.writer(), "harvester"), Level::kDebug);
  logger.Info("first", {{"n", 1}});
  logger.Debug("second\nwith newline and {} and %s and \xff");
  logger.Log(Level::kTrace, "not this");
  pipe.CloseWriter();
  const std::string text = pipe.ReadAll();
  EXPECT_THAT(text, EndsWith("}\n"));
  const std::vector<std::string> lines = Lines(text);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(json::parse(lines[0])["@message"], "first");
  EXPECT_EQ(json::parse(lines[0])["n"], 1);
  EXPECT_EQ(json::parse(lines[1])["@message"], "second\nwith newline and {} and %s and \ufffd");
}

TEST_F(SinksTest, P3_each_line_is_written_at_once) {
  // A packet socket preserves the boundaries of write(2).
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const Logger logger(MakeHclogSinkOn(ends[0], "harvester"), Level::kInfo);
  logger.Info("short");
  logger.Info(std::string(30'000, 'x'));
  std::vector<char> buffer(100'000);
  for (const std::size_t at_least : {20u, 30'000u}) {
    const ssize_t got = read(ends[1], buffer.data(), buffer.size());
    ASSERT_GT(got, static_cast<ssize_t>(at_least));
    const std::string line(buffer.data(), static_cast<std::size_t>(got));
    EXPECT_THAT(line, EndsWith("}\n"));
    EXPECT_TRUE(json::accept(line));
  }
  close(ends[0]);
  close(ends[1]);
}

TEST_F(SinksTest, P3_lines_of_several_threads_and_sinks_do_not_mix) {
  Pipe pipe;
  std::string text;
  std::jthread reader([&] { text = pipe.ReadAll(); });
  {
    // Two sinks on one descriptor, like two processes with one inherited stderr. Each line is
    // shorter than PIPE_BUF, so one write(2) is atomic.
    const auto first = MakeHclogSinkOn(pipe.writer(), "one");
    const auto second = MakeHclogSinkOn(pipe.writer(), "two");
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        const Logger logger(t % 2 == 0 ? first : second, Level::kInfo);
        for (int i = 0; i < 500; ++i) logger.Info(std::string(static_cast<std::size_t>(i), 'm'));
      });
    }
  }
  pipe.CloseWriter();
  reader.join();
  const std::vector<std::string> lines = Lines(text);
  EXPECT_THAT(lines, SizeIs(2000));
  for (const std::string& line : lines) ASSERT_TRUE(json::accept(line)) << line;
}

TEST_F(SinksTest, P2_a_reader_that_has_closed_the_pipe_does_not_end_the_process) {
  Pipe pipe;
  const Logger logger(MakeHclogSinkOn(pipe.writer(), "harvester"), Level::kInfo);
  pipe.CloseReader();
  logger.Info("into the void");
  logger.Info("and again");
}

TEST_F(SinksTest, P2_a_closed_descriptor_does_not_end_the_process) {
  const Logger logger(MakeHclogSinkOn(-1, "harvester"), Level::kInfo);
  logger.Info("nowhere");
}

// Fills a non-blocking pipe. The part of a line that the sink wrote before its timeout remains as a
// separate line; later lines are complete.
TEST_F(SinksTest, P3_a_full_pipe_loses_lines_and_tears_none_of_the_others) {
  Pipe pipe;
  pipe.DoNotBlock();
  const Logger logger(MakeHclogSinkOn(pipe.writer(), "harvester"), Level::kInfo);
  logger.Info("a", {{"text", std::string(40'000, 'a')}});
  logger.Info("b", {{"text", std::string(40'000, 'b')}});  // the pipe holds 64 KiB
  std::string text(70'000, '\0');
  const ssize_t got = read(pipe.reader(), text.data(), text.size());
  ASSERT_GT(got, 0);
  text.resize(static_cast<std::size_t>(got));
  logger.Info("c");
  pipe.CloseWriter();
  const std::vector<std::string> lines = Lines(text + pipe.ReadAll());
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_EQ(json::parse(lines[0])["@message"], "a");
  EXPECT_FALSE(json::accept(lines[1]));  // the truncated line
  EXPECT_EQ(json::parse(lines[2])["@message"], "c");
}

TEST_F(SinksTest, P3_a_slow_reader_on_a_pipe_that_does_not_block_gets_every_line) {
  Pipe pipe;
  pipe.DoNotBlock();
  std::string text;
  std::jthread reader([&] { text = pipe.ReadAll(); });
  {
    const Logger logger(MakeHclogSinkOn(pipe.writer(), "harvester"), Level::kInfo);
    for (int i = 0; i < 100; ++i) logger.Info("m", {{"text", std::string(10'000, 'x')}});
  }
  pipe.CloseWriter();
  reader.join();
  const std::vector<std::string> lines = Lines(text);
  EXPECT_THAT(lines, SizeIs(100));
  for (const std::string& line : lines) ASSERT_TRUE(json::accept(line));
}

// Runs `write` with standard error (2) redirected to a pipe.
template <typename Function>
std::string CaptureStandardError(Function write) {
  testing::internal::CaptureStderr();
  write();
  return testing::internal::GetCapturedStderr();
}

TEST_F(SinksTest, The_default_sinks_write_to_standard_error_and_nothing_to_standard_output) {
  testing::internal::CaptureStdout();
  const std::string json_text = CaptureStandardError(
      [] { Logger(MakeHclogSink("harvester"), Level::kInfo).Info("to the host"); });
  EXPECT_THAT(json_text, AllOf(HasSubstr("\"@message\":\"to the host\""), EndsWith("}\n")));
  const std::string plain = CaptureStandardError([] {
    Logger(MakePlainSink(), Level::kInfo).Info("to a person", {{"vm", "web-1"}});
  });
  EXPECT_THAT(plain, EndsWith("Z [INFO]  to a person: vm=web-1\n"));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace nomad_harvester::log
