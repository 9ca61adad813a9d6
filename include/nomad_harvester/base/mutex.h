// SPDX-License-Identifier: Apache-2.0
// A std::mutex that Clang's thread-safety analysis can follow.
//
// absl::Mutex is not used: Debian's libabsl_synchronization is not instrumented, so ThreadSanitizer
// reports every critical section of an absl::Mutex as a race.
#ifndef NOMAD_HARVESTER_BASE_MUTEX_H_
#define NOMAD_HARVESTER_BASE_MUTEX_H_

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

// Clang's thread-safety annotations; empty for other compilers.
#if defined(__clang__)
#define NH_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define NH_THREAD_ANNOTATION(x)
#endif

#define NH_CAPABILITY(x) NH_THREAD_ANNOTATION(capability(x))
#define NH_SCOPED_CAPABILITY NH_THREAD_ANNOTATION(scoped_lockable)
#define NH_GUARDED_BY(x) NH_THREAD_ANNOTATION(guarded_by(x))
#define NH_REQUIRES(...) NH_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define NH_ACQUIRE(...) NH_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define NH_RELEASE(...) NH_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define NH_NO_THREAD_SAFETY_ANALYSIS NH_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace nomad_harvester::base {

class NH_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Lower-case, so that Mutex is a BasicLockable for std::condition_variable_any.
  void lock() NH_ACQUIRE() { mutex_.lock(); }
  void unlock() NH_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// Holds a Mutex for a scope. Never hold one over I/O or a callback.
class NH_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) NH_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() NH_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable for Mutex. Wait* must be called with the mutex held; it is held again when
// they return. Waits with a stop_token return within a millisecond of a stop request.
class CondVar {
 public:
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

  template <typename Predicate>
  void Wait(Mutex& mutex, Predicate done) NH_REQUIRES(mutex) {
    condition_.wait(mutex, done);
  }

  // Returns done(); false means that a stop was requested first.
  template <typename Predicate>
  bool Wait(Mutex& mutex, std::stop_token stop, Predicate done) NH_REQUIRES(mutex) {
    return condition_.wait(mutex, std::move(stop), done);
  }

  // Returns done(); false means time-out or a stop request.
  template <typename TimePoint, typename Predicate>
  bool WaitUntil(Mutex& mutex, std::stop_token stop, TimePoint until, Predicate done)
      NH_REQUIRES(mutex) {
    return condition_.wait_until(mutex, std::move(stop), until, done);
  }

 private:
  std::condition_variable_any condition_;
};

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_MUTEX_H_
