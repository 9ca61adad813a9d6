// SPDX-License-Identifier: Apache-2.0
#include "wait_line.h"

#include <chrono>
#include <iostream>
#include <streambuf>
#include <thread>
#include <unistd.h>
#include <utility>

namespace nomad_harvester::cli {
namespace {

constexpr std::chrono::seconds kShort{1};
constexpr std::chrono::milliseconds kPeriod{250};
constexpr char kErase[] = "\r\x1b[K";

class WatchedTransport final : public http::HttpTransport {
 public:
  WatchedTransport(std::shared_ptr<http::HttpTransport> inner, std::string where,
                   OpenRequests& requests)
      : inner_(std::move(inner)), where_(std::move(where)), requests_(requests) {}

  absl::StatusOr<http::HttpResponse> Send(const runtime::Context& context,
                                          const http::HttpRequest& request) override {
    if (request.server_wait > base::Duration::zero()) return inner_->Send(context, request);
    const OpenRequests::Id id = requests_.Begin(where_, std::chrono::steady_clock::now());
    auto outcome = inner_->Send(context, request);
    requests_.End(id);
    return outcome;
  }

 private:
  const std::shared_ptr<http::HttpTransport> inner_;
  const std::string where_;
  OpenRequests& requests_;
};

// Nothing can be done about a terminal that takes no bytes.
void WriteToTerminal(const std::string& text) {
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

}  // namespace

OpenRequests::Id OpenRequests::Begin(std::string where, base::MonoTime now) {
  const base::MutexLock lock(mutex_);
  open_.emplace(++next_, Request{.where = std::move(where), .begin = now});
  return next_;
}

void OpenRequests::End(Id id) {
  const base::MutexLock lock(mutex_);
  open_.erase(id);
}

std::string OpenRequests::Line(base::MonoTime now) const {
  const base::MutexLock lock(mutex_);
  if (open_.empty()) return "";
  const Request& oldest = open_.begin()->second;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - oldest.begin);
  if (seconds < kShort) return "";
  return "waiting for " + oldest.where + " (" + std::to_string(seconds.count()) + "s)";
}

std::shared_ptr<http::HttpTransport> WithOpenRequests(std::shared_ptr<http::HttpTransport> inner,
                                                      std::string where, OpenRequests& requests) {
  return std::make_shared<WatchedTransport>(std::move(inner), std::move(where), requests);
}

// The end of the standard error: the line, or other text. Its mutex is held while something is
// written, so that the line is not drawn into it.
class WaitLine::Screen {
 public:
  Screen(const OpenRequests& requests, std::size_t width)
      : requests_(requests),
        width_(width),
        out_(std::cout, *this),
        err_(std::cerr, *this),
        painter_([this](const std::stop_token& stop) { Paint(stop); }) {}
  ~Screen() {
    painter_.request_stop();
    painter_.join();
    const base::MutexLock lock(mutex_);
    Show("");
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Erases the line, and calls `write`.
  template <typename Function>
  auto Write(const Function& write) {
    const base::MutexLock lock(mutex_);
    Show("");
    return write();
  }
  // While the text ends inside a line, nothing is drawn behind it.
  void SetInsideLine(bool inside) NH_NO_THREAD_SAFETY_ANALYSIS { inside_line_ = inside; }

 private:
  // A stream's buffer that erases the line first.
  class Buffer final : public std::streambuf {
   public:
    Buffer(std::ostream& stream, Screen& screen)
        : stream_(stream), screen_(screen), inner_(stream.rdbuf()) {
      stream_.rdbuf(this);
    }
    ~Buffer() override { stream_.rdbuf(inner_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

   protected:
    std::streamsize xsputn(const char* text, std::streamsize size) override {
      return screen_.Write([&] {
        if (size > 0) screen_.SetInsideLine(text[size - 1] != '\n');
        return inner_->sputn(text, size);
      });
    }
    int_type overflow(int_type character) override {
      if (traits_type::eq_int_type(character, traits_type::eof())) return sync();
      const char text = traits_type::to_char_type(character);
      return xsputn(&text, 1) == 1 ? character : traits_type::eof();
    }
    int sync() override {
      return screen_.Write([this] { return inner_->pubsync(); });
    }

   private:
    std::ostream& stream_;
    Screen& screen_;
    std::streambuf* const inner_;
  };

  void Show(const std::string& line) NH_REQUIRES(mutex_) {
    if (line == shown_) return;
    WriteToTerminal(kErase + line);
    shown_ = line;
  }

  void Paint(const std::stop_token& stop) {
    const base::MutexLock lock(mutex_);
    while (!stop.stop_requested()) {
      // One that is broken could not be erased.
      if (!inside_line_) {
        Show(requests_.Line(std::chrono::steady_clock::now()).substr(0, width_ - 1));
      }
      next_.WaitUntil(mutex_, stop, std::chrono::steady_clock::now() + kPeriod,
                      [] { return false; });
    }
  }

  const OpenRequests& requests_;
  const std::size_t width_;
  base::Mutex mutex_;
  base::CondVar next_;
  std::string shown_ NH_GUARDED_BY(mutex_);
  bool inside_line_ NH_GUARDED_BY(mutex_) = false;
  Buffer out_;
  Buffer err_;
  std::jthread painter_;
};

WaitLine::WaitLine(const Terminal& terminal)
    : screen_(terminal.redraws ? std::make_unique<Screen>(requests_, terminal.width) : nullptr) {}

WaitLine::~WaitLine() = default;

std::shared_ptr<log::Sink> WaitLine::Around(std::shared_ptr<log::Sink> inner) {
  if (screen_ == nullptr) return inner;
  class Sink final : public log::Sink {
   public:
    Sink(std::shared_ptr<log::Sink> lines, Screen& screen)
        : lines_(std::move(lines)), screen_(screen) {}
    void Write(const log::Record& record) override {
      screen_.Write([&] { lines_->Write(record); });
    }

   private:
    const std::shared_ptr<log::Sink> lines_;
    Screen& screen_;
  };
  return std::make_shared<Sink>(std::move(inner), *screen_);
}

}  // namespace nomad_harvester::cli
