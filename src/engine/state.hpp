// What the engine knows: of the process, of each handle, of each file. Lookup and bookkeeping only.
// What does not live here: decisions (open.cpp, view.cpp, call.cpp), execution (direct.cpp).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/handle_table.hpp"
#include "base/raw_syscall.hpp"
#include "container/container.hpp"
#include "engine/calls/together.hpp"
#include "engine/calls/turns.hpp"
#include "engine/choice/choosing.hpp"
#include "engine/engine.hpp"
#include "engine/files/descriptors.hpp"
#include "engine/files/process_groups.hpp"
#include "engine/verify/left_out.hpp"
#include "engine/verify/write_log.hpp"
#include "layout/core/piece_cursor.hpp"
#include "mpi/status_bytes.hpp"
#include "storage/posix.hpp"

namespace ioweir::engine {

struct Handle;
struct Rebalance;
struct AtomicMode;
class WriteBehindQueue;
class SharedPointer;
class SharedReads;
struct Behind;

/// Keyed by the file and not by the handle: PnetCDF has a file open twice.
struct FileState {
    FileIdentity identity;
    std::mutex log_lock;
    WriteLog log;                                ///< with verify only
    std::atomic<std::int64_t> passed_writes{0};  ///< writes that the MPI library did, of which the log knows nothing

    std::mutex size_lock;                         ///< for what follows: sizes.cpp
    std::atomic<std::int64_t> deferred_bytes{0};  ///< how long a handle has said that the file is; 0: as long as it is
    std::shared_ptr<Handle> deferring;            ///< that handle; null where there is none
    std::optional<bool> grows;                    ///< can the file system do it? unknown until first needed

    std::mutex container_lock;
    std::weak_ptr<container::Container> container;  ///< one for all handles of this process, as long as there are any

    std::atomic<int> behind_handles{0};  ///< how many of this process write behind; for what follows: behind.cpp
    /// Nothing of this process waits in the queues of others. With one thread in MPI at a time; null: not known.
    std::atomic<const WriteBehindQueue*> last_handed{nullptr};
    std::mutex behind_lock;
    std::vector<std::shared_ptr<WriteBehindQueue>> queues;  ///< where their bytes may wait
};

/// Calls that went to the MPI library, by reason.
class PassedThrough {
public:
    void count(const std::string& reason, std::int64_t calls = 1);
    /// All calls that there will be have this reason: it is said also where there are none.
    void mention(const std::string& reason);
    struct Entry {
        std::string reason;
        std::int64_t calls;
    };
    [[nodiscard]] std::vector<Entry> take();

private:
    Entry& entry(const std::string& reason);

    std::mutex lock_;
    std::vector<Entry> entries_;
};

/// All queues that there are, for the end of the process.
class WriteBehindQueues {
public:
    void add(const std::shared_ptr<WriteBehindQueue>& queue);
    [[nodiscard]] std::vector<std::shared_ptr<WriteBehindQueue>> all() const;

private:
    mutable std::mutex lock_;
    std::vector<std::weak_ptr<WriteBehindQueue>> queues_;
    bool waits_for_exit_ = false;
};

/// A split collective between its begin and its end. A handle has one at a time (MPI 4.0, section 14.4.5).
struct SplitCollective {
    enum class Kind { none, read_all, write_all, read_at_all, write_at_all, read_ordered, write_ordered };
    Kind kind = Kind::none;
    bool by_library = false;  ///< the real end must be called
    int result = MPI_SUCCESS;
    MPI_Status status{};
};

/// What the program's hints say besides the strategy.
struct HintEffects {
    bool reads_holes = true;      ///< small holes may be read along with what is wanted
    bool reads_together = true;   ///< collective reads go through aggregators, where there are any; agreed by all ranks
    bool writers_chosen = false;  ///< by the rule or by a hint: it is not just the default
    const char* sieving_answer = "automatic";  ///< to romio_ds_write
};

/// What a datatype holds, as long as layout::age_of_types() is `age`.
struct LastType {
    MPI_Datatype datatype{};
    std::uint32_t age = 0;
    std::shared_ptr<const layout::FlatType> type;
};

/// Calls of one piece that are one system call and nothing else: plain_piece.hpp.
struct PlainCalls {
    bool writes = false, reads = false;  ///< are such calls, as far as the handle goes
    bool together = false;               ///< what lies together in the view's data does so in the file
    std::int64_t base = 0;               ///< where the view's data begin, where they lie together
    std::int64_t end = 0;                ///< behind the data that can be reached
    /// What the call before moved.
    MPI_Datatype datatype{};
    std::uint32_t age = 0;  ///< as in LastType
    MPI_Count count = 0;    ///< 0: there was none
    std::int64_t bytes = 0, etypes = 0;
};

/// One MPI_File of a file that a rule of the plan matches.
struct Handle {
    std::uint32_t id = 0;
    std::string path;
    bool readable = false;
    bool writable = false;

    bool engaged = false;  ///< agreed by all ranks: the engine moves its data
    std::string refusal;   ///< why not, if not

    int rank = 0;  ///< in the group that opened the file
    int size = 1;
    bool one_thread = false;  ///< no rank of the file has several threads in MPI at a time; agreed by all ranks
    std::shared_ptr<ProcessGroup> ranks;  ///< that group; only if engaged and size > 1
    MPI_Comm comm{};                      ///< its communicator

    std::shared_ptr<FileState> file;
    Descriptor descriptor;
    std::mutex descriptor_lock;  ///< for its replacement

    storage::Backend* storage = nullptr;  ///< how its bytes are reached: the engine's backend, or the container
    std::shared_ptr<container::Container> container;  ///< where the bytes lie in several files; null: in one
    container::Role role;                             ///< of this handle, in it
    std::shared_ptr<const container::GenerationLock> generation_lock;  ///< rank 0's, as long as it may write
    container::Left left;                           ///< of its index, by this process, once it was left
    std::atomic<bool> said_problem{false};          ///< the user knows why it cannot be read
    std::atomic<bool> said_refusal{false};          ///< the user knows of a call that cannot be made in it
    std::shared_ptr<SharedPointer> shared_pointer;  ///< those of a container; else the MPI library has its own
    std::shared_ptr<AtomicMode> atomic;             ///< the same
    std::int64_t begin = 0;                         ///< where its pointers stand at first (MPI_MODE_APPEND)
    std::vector<std::string>
        log_places;  ///< directories on targets among which the ranks' logs are dealt; agreed by all ranks
    std::int64_t shared_stamp = 0;              ///< of what all ranks have told each other before a collective read
    std::shared_ptr<SharedReads> shared_reads;  ///< ... in memory; null: by a reduction. Agreed by all ranks
    bool deletes_on_close = false;              ///< the container too
    bool visible_at_sync = false;               ///< the plan's visibility = "sync": nobody reads others' bytes before
    std::shared_ptr<Rebalance> rebalance;       ///< slow targets are watched for; agreed by all ranks
    bool clean = true;                          ///< no rank had an error at the last agreement

    bool defers_set_size = false;
    bool sequential =
        false;  ///< MPI_MODE_SEQUENTIAL: only by the shared file pointer; a container's then, else the library's
    planner::Strategy strategy;                ///< of the rule and the program's hints; agreed by all ranks if engaged
    planner::Stripe stored;                    ///< as the file system says; 0: it does not
    std::shared_ptr<ProcessGroup> exchanging;  ///< those of its ranks that exchange bytes with this one; null: none do
    std::shared_ptr<Team> team;      ///< collective calls go through its exchange; null: each rank moves its own bytes
    std::shared_ptr<Behind> behind;  ///< this rank's bytes are handed over to a writer; null: they are not
    OwnRequest own_request;
    Subgroup subgroup[2];  ///< for reading, for writing
    HintEffects effects;

    bool lean = false;  ///< calls of one piece need none of what other calls need: one_piece.cpp
    PlainCalls plain;
    std::atomic<bool> library_atomic{false};         ///< atomic mode of a file that is no container
    std::atomic<std::uint32_t> descriptors_gone{0};  ///< Host::descriptors_gone when the descriptor was last looked at

    layout::FileView view;
    std::int64_t view_piece_bytes = INT64_MAX;  ///< least of all ranks: mean size of what lies together in the view
    std::atomic<std::int64_t> own_pointer{-1};  ///< in etypes; -1: the library's counts (position.cpp)
    std::recursive_mutex pointer_lock;          ///< where several threads move it on; error handlers may seek
    bool library_sieves = false;                ///< agreed by all ranks, for the present view: see view.cpp
    std::int64_t view_bytes =
        INT64_MAX;             ///< of the view's data that can be followed; behind them tiles lie in each other
    bool external32 = false;   ///< the data representation of the present view; else as in memory; containers only
    std::string view_refusal;  ///< agreed by all ranks: why this view is left to the MPI library; empty: it is not

    std::shared_ptr<Choices> choices;  ///< the engine's calls are weighed against the library's; null: they are not
    Weighed weighed[8];                ///< by CallKind
    LeftCall left_calls[2];            ///< for reading, for writing, in the present view

    std::shared_ptr<Choosing> choosing;  ///< what is measured for the choice of writers; null: nothing is
    bool is_cut = false;  ///< agreed by all ranks: its writers were too slow, and the rest is the library's

    LastType last_type;  ///< in memory, of the call before; of programs with one thread in MPI at a time

    SplitCollective split;
    std::atomic<int> failed{MPI_SUCCESS};  ///< class of this rank's first failure of which the others do not know
    std::atomic<int> owed{MPI_SUCCESS};    ///< of its first failure of which not even its own program knows

    Totals totals;
    std::int64_t durable_operations = 0;  ///< totals.operations at the last sync: what came since is not durable
    PassedThrough passed;

    // For --verify:
    bool all_verify = false;  ///< agreed by all ranks
    LeftOut left_out;
    bool view_is_set = false;  ///< by a file that is not the engine's: where its calls go is not known
    std::atomic<std::int64_t> failed_writes{0};  ///< calls that the engine made and that failed, if in part
    std::atomic<bool> failed_behind{false};      ///< bytes that were handed over have not been written
};

class Engine {
public:
    Engine(const mpi::FileCalls& real, Options given, Host services);

    const mpi::FileCalls below;
    const policy::PlanFile plan;
    /// By what ranks see that they have the same rule: those of another job, or of sessions, may have read another plan.
    const std::vector<std::int64_t> rule_digests;
    const bool verify;
    const bool weighs;
    const TrialPace trial_pace;
    const Host host;
    storage::Backend& backend;
    Descriptors descriptors;

    [[nodiscard]] std::shared_ptr<Handle> find(MPI_File fh) const;
    /// The same for a call on an open file, which by MPI's rules nobody closes meanwhile. Takes no lock.
    [[nodiscard]] Handle* find_open(MPI_File fh) const {
        Handle* const known = open_.find(reinterpret_cast<std::uintptr_t>(fh));
        return known != nullptr || !overflowed_ ? known : find(fh).get();
    }
    void add(MPI_File fh, std::shared_ptr<Handle> handle);
    void remove(MPI_File fh);
    /// All that are left, and forgets them.
    [[nodiscard]] std::vector<std::shared_ptr<Handle>> take_all();

    /// A handle that is open for the file at a path, by whatever name it was opened; of several one that is engaged. Null: there is none.
    [[nodiscard]] std::shared_ptr<Handle> find_named(const std::string& path) const;

    [[nodiscard]] std::shared_ptr<FileState> file(const FileIdentity& identity);
    /// Null: no handle is open for it. Takes no memory, for signal handlers may open files, too.
    [[nodiscard]] std::shared_ptr<FileState> known_file(const FileIdentity& identity) const;
    [[nodiscard]] std::vector<std::shared_ptr<FileState>> files() const;  ///< all that a handle is open for
    [[nodiscard]] std::uint32_t next_id() { return ++last_id_; }

    /// layout::age_of_types().
    const std::atomic<std::uint32_t>& ages_of_types;
    /// How many bytes a status says. Armed by install().
    mpi::StatusBytes status_bytes;
    /// MPI_THREAD_MULTIPLE: other threads of the program may be in calls on the same handle.
    bool threaded = true;

    container::Clock clock;  ///< of all containers
    ProcessGroups process_groups;
    std::map<std::int64_t, std::shared_ptr<Choices>> choices_alone;  ///< by rule, of files that one rank opens
    const std::uint64_t seed;                                        ///< as in Options
    const pid_t process = raw::process_id();                         ///< a child of fork has another one
    const std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
    SeriesByName series;  ///< whose writers are chosen; of programs with one thread in MPI at a time
    WriteBehindQueues queues;
    std::atomic<int> behind_handles{0};  ///< open ones whose bytes are handed over

private:
    storage::PosixBackend posix_;
    mutable std::shared_mutex lock_;
    std::unordered_map<MPI_File, std::shared_ptr<Handle>> handles_;
    HandleTable<Handle*, 4096> open_;      ///< those in handles_
    std::atomic<bool> overflowed_{false};  ///< some are not in open_
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::weak_ptr<FileState>> files_;
    std::atomic<std::uint32_t> last_id_{0};
};

/// Null before install(). Never destroyed: threads may be inside while the process ends.
[[nodiscard]] Engine* engine();

/// Marks file operations as the engine's own. Not nested.
class StorageScope {
public:
    explicit StorageScope(const Engine& engine) : host_(engine.host) {
        if (host_.enter_storage != nullptr) host_.enter_storage();
    }
    ~StorageScope() {
        if (host_.leave_storage != nullptr) host_.leave_storage();
    }
    StorageScope(const StorageScope&) = delete;
    StorageScope& operator=(const StorageScope&) = delete;

private:
    const Host& host_;
};

}  // namespace ioweir::engine
