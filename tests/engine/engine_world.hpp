// What the engine's tests under real MPI processes share: the engine linked in between a program and the MPI library, with a
// backend that can be made to fail, and what it notes.
//
// IOWEIR_TEST_CASES says how many random cases a test takes (default 40).
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "layout/core/extent.hpp"
#include "mpi_cases/case_runner.hpp"
#include "storage/fault.hpp"
#include "storage/posix.hpp"

namespace ioweir {

/// Makes nothing durable, for no test ends with a crash of the machine: thousands of syncs would take minutes of a disk.
class QuickPosix final : public storage::PosixBackend {
public:
    int attempt_sync(int /*descriptor*/) override { return 0; }
};

/// A backend whose fault can be changed between cases, while nothing is moved; counts attempts, of threads that write behind too.
class SwitchedBackend final : public storage::Backend {
public:
    void arm(storage::Fault fault) { now_ = std::make_unique<storage::FaultBackend>(posix_, fault); }
    [[nodiscard]] std::int64_t struck() const { return now_->struck(); }
    std::vector<std::int64_t> take_offsets() {  ///< of those attempts
        const std::lock_guard guard(lock_);
        return std::exchange(offsets_, {});
    }
    std::vector<layout::Extent> take_operations() {  ///< reads and writes of any file
        const std::lock_guard guard(lock_);
        return std::exchange(operations_, {});
    }
    std::map<std::string, std::string> attributes;  ///< of every file: what a file system would say
    /// Writes to files whose path has this in it take so much longer; empty: none.
    void slow_down(std::string part_of_path, std::int64_t ns) {
        const std::lock_guard guard(lock_);
        slow_.clear();
        if (!part_of_path.empty()) slow_.push_back({std::move(part_of_path), ns});
    }
    /// Besides; of several that fit a path the first one counts.
    void slow_down_too(std::string part_of_path, std::int64_t ns) {
        const std::lock_guard guard(lock_);
        slow_.push_back({std::move(part_of_path), ns});
    }
    std::int64_t take_writes() { return writes_.exchange(0); }
    std::int64_t take_reads() { return reads_.exchange(0); }
    std::int64_t take_flushes() { return flushes_.exchange(0); }
    std::int64_t take_begun_flushes() { return begun_flushes_.exchange(0); }

    storage::Opened attempt_open(const char* path, int flags, mode_t mode) override {
        const storage::Opened opened = now_->attempt_open(path, flags, mode);
        const std::lock_guard guard(lock_);
        if (opened.error == 0) paths_[opened.descriptor] = path;
        return opened;
    }
    void note_opened(int descriptor, const char* path) override {
        const std::lock_guard guard(lock_);
        paths_[descriptor] = path;
    }
    int attempt_sync(int descriptor) override { return now_->attempt_sync(descriptor); }
    int attempt_close(int descriptor) override {
        {
            const std::lock_guard guard(lock_);
            paths_.erase(descriptor);
        }
        return now_->attempt_close(descriptor);
    }
    std::int64_t attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) override {
        ++writes_;
        std::int64_t wait_ns = 0;
        {
            const std::lock_guard guard(lock_);
            offsets_.push_back(offset);
            operations_.push_back({offset, bytes_of(pieces, count)});
            const auto known = paths_.find(descriptor);
            const auto slow = std::find_if(slow_.begin(), slow_.end(), [&](const auto& one) {
                return known != paths_.end() && known->second.find(one.first) != std::string::npos;
            });
            if (slow != slow_.end()) wait_ns = slow->second;
        }
        if (wait_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(wait_ns));
        return now_->attempt_write(descriptor, pieces, count, offset);
    }
    std::int64_t attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) override {
        ++reads_;
        {
            const std::lock_guard guard(lock_);
            operations_.push_back({offset, bytes_of(pieces, count)});
        }
        return now_->attempt_read(descriptor, pieces, count, offset);
    }

    int attempt_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override {
        ++flushes_;
        return now_->attempt_flush(descriptor, bytes, offset);
    }
    void begin_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override {
        ++begun_flushes_;
        now_->begin_flush(descriptor, bytes, offset);
    }
    int attempt_allocate(int descriptor, int mode, std::int64_t offset, std::int64_t bytes) override {
        return now_->attempt_allocate(descriptor, mode, offset, bytes);
    }
    std::int64_t attempt_read_attribute(int, const char* name, void* value, std::size_t room) override {
        const auto found = attributes.find(name);
        if (found == attributes.end()) return -EOPNOTSUPP;
        const std::size_t bytes = std::min(room, found->second.size());
        std::copy_n(found->second.data(), bytes, static_cast<char*>(value));
        return static_cast<std::int64_t>(bytes);
    }
    int attempt_write_attribute(int, const char* name, const void* value, std::size_t bytes) override {
        if (attributes.empty()) return -EOPNOTSUPP;
        attributes[name] = std::string(static_cast<const char*>(value), bytes);
        return 0;
    }

private:
    static std::int64_t bytes_of(const iovec* pieces, int count) {
        std::int64_t bytes = 0;
        for (int i = 0; i < count; ++i) bytes += static_cast<std::int64_t>(pieces[i].iov_len);
        return bytes;
    }

    QuickPosix posix_;
    std::unique_ptr<storage::FaultBackend> now_ = std::make_unique<storage::FaultBackend>(posix_, storage::Fault{});
    std::atomic<std::int64_t> writes_{0}, reads_{0}, flushes_{0}, begun_flushes_{0};
    std::mutex lock_;
    std::vector<std::int64_t> offsets_;
    std::vector<layout::Extent> operations_;
    std::map<int, std::string> paths_;
    std::vector<std::pair<std::string, std::int64_t>> slow_;
};

struct Note {
    format::NoteCode code;
    std::string path;
    std::int64_t value;
    std::string text;
};

/// What verification says of this rank's writes.
struct Finding {
    format::VerifyOutcome outcome;
    std::int64_t calls, bytes, offset;
    std::string path, text;
};

using Did = format::EngineFigures<std::int64_t>;

/// Who made calls of a kind under `auto`.
struct WeighedCalls {
    format::CallKind call;
    format::Chosen chosen;
    format::WeighedFigures<std::int64_t> figures;
};

/// Never destroyed: the engine refers to it until the process ends.
struct World {
    int rank = 0, ranks = 1;
    std::uint64_t cases = 40;
    std::string directory;
    SwitchedBackend backend;
    std::vector<Note> notes;
    std::vector<Finding> findings;
    std::vector<Did> work;  ///< of each handle that was closed
    std::vector<WeighedCalls> weighed;
    void (*on_step)(const engine::Step& step) = nullptr;
    mpi::FileCalls below, hooks;
    cases::IoCalls library{}, engine{};

    [[nodiscard]] std::string path(const char* name) const { return directory + "/" + name; }
    [[nodiscard]] std::int64_t count(format::NoteCode code) const;
    /// This rank's bytes of one outcome, whose reason has this in it.
    [[nodiscard]] std::int64_t found(format::VerifyOutcome outcome, const std::string& part = "") const;
    /// A figure of all handles that this rank has closed.
    [[nodiscard]] std::int64_t did(std::int64_t Did::* figure) const;
    [[nodiscard]] bool noted(format::NoteCode code, const std::string& part) const;
};
extern World* world;

struct WorldOptions {
    bool only_first_verifies = false;  ///< else all ranks or none
    bool verify = true;   ///< files are compared with what was written, for which checksums are kept in memory
    bool weighs = false;  ///< the engine compares its calls with those of the library
    engine::TrialPace trial_pace{.long_call_ns = INT64_MAX,
                                 .before_look_crowded = 0};   ///< tests make few calls, and some slow them down
    void (*change_library)(mpi::FileCalls& below) = nullptr;  ///< before the engine sees it
    void (*change_plan)(policy::PlanFile& plan) = nullptr;    ///< the same, on this rank
    bool (*program_has_open)(std::uint64_t device, std::uint64_t inode) = nullptr;
    bool plain =
        false;  ///< as in programs: nothing counts or fails below the engine, and the tracer says which descriptors are closed
};

/// Makes the world before the first test, with this plan, and takes it down after the last. For a global constant.
testing::Environment* add_world(const std::string& plan_text, const WorldOptions& options);
testing::Environment* add_world(const std::string& plan_text, bool verify = true);

cases::IoCalls calls_of(const mpi::FileCalls& table);

class EngineTest : public testing::Test {
protected:
    void SetUp() override;

    /// True on every rank if it is on any.
    static bool on_any_rank(bool mine);
    static MPI_File open(const cases::IoCalls& io, const std::string& path, int amode = MPI_MODE_CREATE | MPI_MODE_RDWR,
                         MPI_Comm comm = MPI_COMM_WORLD);
    static void remove(const std::string& path);
    static std::vector<unsigned char> contents(const std::string& path);
    static void native_view(const cases::IoCalls& io, MPI_File file, MPI_Offset displacement, MPI_Datatype etype,
                            MPI_Datatype filetype);
};

std::string all_problems(const cases::CaseResult& result);

}  // namespace ioweir
