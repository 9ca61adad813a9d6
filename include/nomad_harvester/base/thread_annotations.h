// SPDX-License-Identifier: Apache-2.0
// Clang's thread-safety annotations as macros; empty for other compilers.
#ifndef NOMAD_HARVESTER_BASE_THREAD_ANNOTATIONS_H_
#define NOMAD_HARVESTER_BASE_THREAD_ANNOTATIONS_H_

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
#define NH_TRY_ACQUIRE(...) NH_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define NH_EXCLUDES(...) NH_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define NH_NO_THREAD_SAFETY_ANALYSIS NH_THREAD_ANNOTATION(no_thread_safety_analysis)

#endif  // NOMAD_HARVESTER_BASE_THREAD_ANNOTATIONS_H_
