// What a call costs besides its system calls, once the calls before it were like it: no memory is taken, and no lock. Counted in the
// engine and what it is made of, by kind of call; what the MPI library does is its own. System calls: tests/trace/test_small_calls.py.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "engine_world.hpp"

extern "C" const char __executable_start, etext;  // of the linker: where this program's own code begins and ends

namespace {

std::atomic<bool> counts{false};
std::atomic<std::int64_t> allocations{0}, locks{0};

template <typename Function>
Function real_function(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

/// Shared libraries take locks while they wait for messages: those are the MPI library's own.
bool is_own(const void* caller) {
    const auto address = reinterpret_cast<std::uintptr_t>(caller);
    return address >= reinterpret_cast<std::uintptr_t>(&__executable_start) &&
           address < reinterpret_cast<std::uintptr_t>(&etext);
}

void* allocate(std::size_t bytes, const void* caller) {
    if (counts && is_own(caller)) ++allocations;
    void* const memory = std::malloc(bytes > 0 ? bytes : 1);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, __builtin_return_address(0)); }
void* operator new[](std::size_t bytes) { return allocate(bytes, __builtin_return_address(0)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    if (counts && is_own(__builtin_return_address(0))) ++allocations;
    return std::malloc(bytes > 0 ? bytes : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
    static const auto real = real_function<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
    if (counts && is_own(__builtin_return_address(0))) ++locks;
    return real(mutex);
}
extern "C" int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
    static const auto real = real_function<int (*)(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
    if (counts && is_own(__builtin_return_address(0))) ++locks;
    return real(lock);
}

namespace ioweir {
namespace {

constexpr const char* plan = R"(
[[file]]
match = "*.everyone"
writers = "everyone"
[[file]]
match = "*.auto"
writers = "auto"
[[file]]
match = "*.gathered"
writers = "aggregators:2"
domains = "cyclic"
stripe = { size = 512 }
)";

[[maybe_unused]] const testing::Environment* const registered =
    add_world(plan, WorldOptions{.verify = false, .plain = true});

constexpr int bytes = 512;
constexpr int warm_calls = 24, calls = 64;

class SteadyTest : public EngineTest {
protected:
    void SetUp() override {
        EngineTest::SetUp();
        PMPI_Type_vector(8, bytes / 8, bytes / 4, MPI_BYTE, &pieces_);
        PMPI_Type_commit(&pieces_);
    }
    void TearDown() override { PMPI_Type_free(&pieces_); }

    [[nodiscard]] MPI_Offset place(int call) const { return (MPI_Offset{call} * world->ranks + world->rank) * bytes; }

    /// What the last of many calls have taken, in this rank.
    void expect_nothing(const std::string& what, const std::function<int(int call)>& make) {
        for (int call = 0; call < warm_calls; ++call) EXPECT_EQ(make(call), MPI_SUCCESS) << what;
        PMPI_Barrier(MPI_COMM_WORLD);
        allocations = locks = 0;
        counts = true;
        int failed = 0;
        for (int call = warm_calls; call < warm_calls + calls; ++call) failed += make(call) != MPI_SUCCESS ? 1 : 0;
        counts = false;
        EXPECT_EQ(failed, 0) << what;
        EXPECT_EQ(allocations.load(), 0) << what;
        EXPECT_EQ(locks.load(), 0) << what;
    }

    /// Every kind that has an offset of its own.
    void expect_nothing_of(const std::string& name) {
        const std::string path = world->path(name.c_str());
        MPI_File file = open(world->engine, path);
        const mpi::FileCalls& io = world->hooks;
        expect_nothing(name + ": write_at", [&](int call) {
            return io.File_write_at(file, place(call), memory_.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        });
        expect_nothing(name + ": write_at of 8 pieces", [&](int call) {
            return io.File_write_at(file, place(call), memory_.data(), 1, pieces_, MPI_STATUS_IGNORE);
        });
        expect_nothing(name + ": write_at_all", [&](int call) {
            return io.File_write_at_all(file, place(call), memory_.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        });
        EXPECT_EQ(io.File_sync(file), MPI_SUCCESS);
        PMPI_Barrier(MPI_COMM_WORLD);
        expect_nothing(name + ": read_at", [&](int call) {
            return io.File_read_at(file, place(call), memory_.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        });
        expect_nothing(name + ": read_at of 8 pieces", [&](int call) {
            return io.File_read_at(file, place(call), memory_.data(), 1, pieces_, MPI_STATUS_IGNORE);
        });
        expect_nothing(name + ": read_at_all", [&](int call) {
            return io.File_read_at_all(file, place(call), memory_.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        });
        expect_nothing(name + ": write",
                       [&](int) { return io.File_write(file, memory_.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE); });
        EXPECT_EQ(io.File_close(&file), MPI_SUCCESS);
        remove(path);
    }

    MPI_Datatype pieces_{};
    std::vector<unsigned char> memory_ = std::vector<unsigned char>(2 * bytes, 7);
};

TEST_F(SteadyTest, WhatItCountsIsCounted) {
    std::mutex lock;
    allocations = locks = 0;
    counts = true;
    lock.lock();
    void* const memory = ::operator new(1);
    lock.unlock();
    counts = false;
    ::operator delete(memory);
    EXPECT_EQ(allocations.load(), 1);
    EXPECT_EQ(locks.load(), 1);
}

TEST_F(SteadyTest, CallsOfEveryoneTakeNoMemoryAndNoLock) { expect_nothing_of("file.everyone"); }

TEST_F(SteadyTest, CallsUnderAutoTakeNoMemoryAndNoLock) { expect_nothing_of("file.auto"); }

TEST_F(SteadyTest, CollectiveCallsThroughAggregatorsTakeNoMemoryAndNoLock) { expect_nothing_of("file.gathered"); }

}  // namespace
}  // namespace ioweir
