#include "engine/behind/write_behind_queue.hpp"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/raw_syscall.hpp"
#include "storage/pacing.hpp"

namespace ioweir::engine {
namespace {

/// How long a waiting rank sleeps before it looks whether its writer is still there.
constexpr std::int64_t patience_us = 20'000;
/// An idle thread is woken by who has work for it; this is only in case that one dies in between.
constexpr std::int64_t idle_us = 10'000'000;
/// Waking it costs its rank more than a small call. So it dozes for a while after its last work: it looks by itself then, and is woken only for so much
/// as is worth it, or by who waits.
constexpr std::int64_t doze_us = 1'000;
constexpr int most_dozes = 50;
constexpr std::int64_t worth_waking_bytes = 1 << 20;
/// Of a file's small calls so many at first, and then one of so many, have their time taken.
constexpr std::uint64_t timed_one_in = 16;
/// The thread needs little: an iovec at most.
constexpr std::size_t stack_bytes = 256 << 10;

bool lock_is_mine(int result, pthread_mutex_t& lock) {
    if (result == EOWNERDEAD) pthread_mutex_consistent(&lock);
    return result == 0 || result == EOWNERDEAD;
}

}  // namespace

/// One writer thread and the ranks that it serves. In shared memory.
struct WriteBehindQueue::Station {
    alignas(64) pthread_mutex_t consumer;  // held by the thread as long as it lives
    alignas(64) SharedWord bell;           // changes when there is work
    SharedWord sleeping;                   // the thread waits for the bell: one of the following
    static constexpr std::uint32_t awake = 0, dozes = 1, sleeps = 2;
    SharedWord gone;  // there is no thread any more: ranks write for themselves
    std::atomic<std::int64_t> busy_ns;
    std::uint32_t first, end;  // its rings

    void ring() {
        bell.fetch_add(1, std::memory_order_seq_cst);
        if (sleeping.exchange(awake, std::memory_order_seq_cst) != awake) wake_all(bell);
    }
    /// There is work. What was put in need not be seen yet by a thread that goes to sleep: it looks once more (serve()).
    void tell(BehindRing& ring_of_rank, std::int64_t worth_waking) {
        const std::uint32_t now = sleeping.load(std::memory_order_relaxed);
        if (now == awake) return;
        if (now == sleeps || ring_of_rank.waits_for(worth_waking)) ring();
    }
};

WriteBehindQueue::Station& WriteBehindQueue::station_of(std::size_t ring) const {
    return stations_[static_cast<std::size_t>(ranks_of_writers().part_of(static_cast<std::int64_t>(ring)))];
}

WriteBehindQueue::WriteBehindQueue(Group& group, std::int64_t writers, std::int64_t capacity, const Services& services)
    : services_(services),
      writers_asked_(writers),
      capacity_asked_(capacity),
      capacity_((std::max(capacity, BehindRing::least_bytes) + 63) / 64 * 64),
      owner_(raw::process_id()),
      writers_(static_cast<std::size_t>(std::clamp<std::int64_t>(writers, 1, group.locals()))),
      own_(static_cast<std::size_t>(group.rank() - group.first_local())) {}

std::size_t WriteBehindQueue::bytes() const {
    return writers_ * sizeof(Station) + rings_.capacity() * (sizeof(BehindWords) + static_cast<std::size_t>(capacity_));
}

std::shared_ptr<WriteBehindQueue> WriteBehindQueue::make(Group& group, std::int64_t writers, std::int64_t capacity,
                                                         const Services& services, std::string& why) {
    const auto locals = static_cast<std::size_t>(group.locals());
    std::shared_ptr<WriteBehindQueue> queue;
    try {
        queue.reset(new WriteBehindQueue(group, writers, capacity, services));
        queue->rings_.reserve(locals);
    } catch (const std::bad_alloc&) {
        queue = nullptr;
    }
    if (!group.all(queue && queue->rings_.capacity() == locals)) {
        why = "no memory for write-behind";
        return nullptr;
    }
    int error = group.share(queue->memory_, queue->bytes());
    if (error == 0) {
        std::byte* const base = queue->memory_.data();
        queue->stations_ = std::launder(reinterpret_cast<Station*>(base));
        auto* const words = std::launder(reinterpret_cast<BehindWords*>(base + queue->writers_ * sizeof(Station)));
        auto* const data = reinterpret_cast<std::byte*>(words + locals);
        try {
            for (std::size_t i = 0; i < locals; ++i)
                queue->rings_.emplace_back(words[i], data + i * static_cast<std::size_t>(queue->capacity_),
                                           queue->capacity_);
            queue->own_station_ = &queue->station_of(queue->own_);
            error = queue->start_thread();
        } catch (const std::bad_alloc&) {
            error = ENOMEM;
        }
    }
    const bool all = group.all(error == 0);
    queue->memory_.seal();
    if (all) return queue;
    why = std::string("no shared memory or thread for write-behind: ") +
          (error != 0 ? std::strerror(error) : "on another rank");
    return nullptr;
}

/// Where this rank is a station's first. Returns an errno value.
int WriteBehindQueue::start_thread() {
    const planner::WriteBehindRanks ranks = ranks_of_writers();
    const std::int64_t writer = ranks.part_of(static_cast<std::int64_t>(own_));
    my_station_ = static_cast<std::size_t>(writer);
    if (ranks.first(writer) != static_cast<std::int64_t>(own_)) return 0;
    Station& station = stations_[my_station_];
    station.first = static_cast<std::uint32_t>(own_);
    station.end = static_cast<std::uint32_t>(ranks.first(writer + 1));
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
    int error = pthread_mutex_init(&station.consumer, &shared);
    pthread_mutexattr_destroy(&shared);
    if (error != 0) return error;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, stack_bytes);
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);  // the thread inherits it: handlers are the program's business
    error = pthread_create(&thread_, &small, thread_main, this);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&small);
    has_thread_ = error == 0;
    return error;
}

WriteBehindQueue::~WriteBehindQueue() { retire(); }

bool WriteBehindQueue::is_owner() const { return raw::process_id() == owner_; }

// ------------------------------------------------------------------------------------------------------------ the file

/// -1, and why, when it cannot be had.
int WriteBehindQueue::usable_descriptor(int& error) {
    const std::lock_guard guard(file_lock_);
    error = 0;
    const std::uint32_t* const counted = services_.host->descriptors_gone;
    const std::uint32_t gone = counted != nullptr ? __atomic_load_n(counted, __ATOMIC_ACQUIRE) : 0;
    const bool untouched = counted != nullptr && descriptors_gone_ == gone;
    if (descriptor_.number >= 0 && (untouched || Descriptors::is_intact(descriptor_))) {
        descriptors_gone_ = gone;
        return descriptor_.number;
    }
    const Descriptors::Opened opened = services_.descriptors->open(path_, false, true);
    error = opened.error;
    if (error == 0 && opened.descriptor.identity != identity_) {
        services_.descriptors->release(opened.descriptor);
        error = ESTALE;  // the file has another name by now
    }
    if (error != 0) return -1;
    descriptor_ = opened.descriptor;
    descriptors_gone_ = gone;
    return descriptor_.number;
}

bool WriteBehindQueue::begin(Group& group, const std::string& path, const FileIdentity& identity, std::string& why) {
    {
        const std::lock_guard guard(file_lock_);
        path_ = path;
        identity_ = identity;
    }
    figures_ = {};
    pieces_ = 0;
    operations_before_ = rings_[own_].operations();
    if (has_thread_) stations_[my_station_].busy_ns = 0;
    int error = 0;
    if (has_thread_) {
        // The engine's own, or else it would seem to be the program's, and never be closed.
        const Host& host = *services_.host;
        if (host.enter_storage != nullptr) host.enter_storage();
        (void)usable_descriptor(error);
        if (host.leave_storage != nullptr) host.leave_storage();
    }
    const bool all = group.all(error == 0);
    if (!all)
        why = std::string("a writer cannot open the file: ") + (error != 0 ? std::strerror(error) : "another rank's");
    return all;
}

void WriteBehindQueue::end() {
    const std::lock_guard guard(file_lock_);
    services_.descriptors->release(std::exchange(descriptor_, {}));
}

// --------------------------------------------------------------------------------------------------- the consumer's side

void* WriteBehindQueue::thread_main(void* queue) {
    auto* const self = static_cast<WriteBehindQueue*>(queue);
    pthread_setname_np(pthread_self(), "ioweir behind");
    const auto serve = [](void* argument) { static_cast<WriteBehindQueue*>(argument)->serve(); };
    if (self->services_.host->run_storage_thread != nullptr) {
        self->services_.host->run_storage_thread(serve, self);
    } else {
        serve(self);
    }
    return nullptr;
}

/// One record of a ring, by whoever holds the station's lock.
void WriteBehindQueue::consume(Station& station, std::size_t ring) {
    const storage::Moment started = storage::now();
    int error = 0;
    const int descriptor = usable_descriptor(error);
    rings_[ring].write_one(*services_.backend, descriptor, error);
    station.busy_ns.fetch_add(storage::ns_between(started, storage::now()), std::memory_order_relaxed);
}

/// Takes one record of each ring, so that no rank waits for all of another's. False when there was none.
bool WriteBehindQueue::serve_once(Station& station) {
    bool any = false;
    for (std::size_t ring = station.first; ring < station.end; ++ring) {
        if (rings_[ring].empty()) continue;
        consume(station, ring);
        any = true;
    }
    return any;
}

void WriteBehindQueue::serve() {
    Station& station = stations_[my_station_];
    if (!lock_is_mine(pthread_mutex_lock(&station.consumer), station.consumer)) return;
    int dozed = most_dozes;
    while (!stopping_.load(std::memory_order_seq_cst)) {
        if (serve_once(station)) {
            dozed = 0;
            if (station.sleeping.load(std::memory_order_relaxed) != Station::awake)
                station.sleeping.store(Station::awake, std::memory_order_relaxed);
            continue;
        }
        const std::uint32_t seen = station.bell.load(std::memory_order_seq_cst);
        station.sleeping.store(dozed < most_dozes ? Station::dozes : Station::sleeps, std::memory_order_seq_cst);
        bool work = stopping_.load(std::memory_order_seq_cst);
        for (std::size_t ring = station.first; ring < station.end; ++ring) work = work || !rings_[ring].empty();
        if (work) continue;
        // A rank does not wait until what it has put in is seen before it looks whether the thread sleeps. So the thread dozes once more after it has
        // said that it sleeps: what was put in by ranks that had not heard of it is seen by then.
        wait_while(station.bell, seen, dozed <= most_dozes ? doze_us : idle_us);
        const bool rung = station.sleeping.load(std::memory_order_seq_cst) == Station::awake;
        dozed = rung ? 0 : std::min(dozed + 1, most_dozes + 1);
    }
    leave(station);
}

/// Writes what is there. A rank that puts something in after that sees `gone`, and does it itself.
void WriteBehindQueue::leave(Station& station) {
    station.gone.store(1, std::memory_order_seq_cst);
    for (std::size_t ring = station.first; ring < station.end; ++ring) {
        const std::uint64_t end = rings_[ring].end();
        while (!rings_[ring].reached(end)) consume(station, ring);
    }
    pthread_mutex_unlock(&station.consumer);
}

void WriteBehindQueue::retire() {
    if (!has_thread_ || !is_owner()) return;
    stopping_.store(true, std::memory_order_seq_cst);
    stations_[my_station_].ring();
    pthread_join(thread_, nullptr);
    has_thread_ = false;
}

/// Does the writer's work where there is no writer. False when there is one, or another rank is at it.
bool WriteBehindQueue::step_in(Station& station) {
    const int result = pthread_mutex_trylock(&station.consumer);
    if (!lock_is_mine(result, station.consumer)) return false;
    if (result == EOWNERDEAD) station.gone.store(1, std::memory_order_seq_cst);
    const Host& host = *services_.host;
    if (host.enter_storage != nullptr) host.enter_storage();
    while (serve_once(station)) {
    }
    if (host.leave_storage != nullptr) host.leave_storage();
    pthread_mutex_unlock(&station.consumer);
    return true;
}

// ------------------------------------------------------------------------------------------------------- the rank's side

void WriteBehindQueue::put(const Memory& memory, const FileRange& range) {
    const std::lock_guard guard(put_lock_);
    const storage::Moment started = storage::now();
    BehindRing& ring = rings_[own_];
    Station& station = *own_station_;
    BehindRing::Parcel parcel(memory, range, ++calls_);
    const auto has_room = [&] { return ring.has_room(parcel); };
    while (!parcel.done()) {
        if (!has_room()) {
            const storage::Moment waiting = storage::now();
            ++figures_.waits;
            station.ring();
            while (!has_room()) {
                ring.rest_until(has_room, patience_us);
                if (!has_room() && !step_in(station)) wake_all(station.bell);
            }
            figures_.wait_ns += storage::ns_between(waiting, storage::now());
        }
        ring.put(parcel);
        station.tell(ring, std::min(worth_waking_bytes, capacity_ / 4));
    }
    if (station.gone.load(std::memory_order_seq_cst) != 0) step_in(station);
    figures_.bytes += memory.bytes;
    figures_.hand_ns += storage::ns_between(started, storage::now());
}

bool WriteBehindQueue::put_piece(const void* data, std::int64_t bytes, std::int64_t offset) {
    BehindRing& ring = rings_[own_];
    Station& station = *own_station_;
    if (ring.has_error() || station.gone.load(std::memory_order_relaxed) != 0) return false;
    const bool first = pieces_ < timed_one_in;
    const bool timed = first || pieces_ % timed_one_in == 0;
    const storage::Moment started = timed ? storage::now() : storage::Moment{};
    const bool rests = station.sleeping.load(std::memory_order_relaxed) != Station::awake;
    if (!ring.put_piece(data, bytes, offset, calls_ + 1, rests)) return false;
    ++calls_;
    station.tell(ring, std::min(worth_waking_bytes, capacity_ / 4));
    ++pieces_;
    figures_.bytes += bytes;
    if (timed) {
        const std::int64_t stands_for = first ? 1 : static_cast<std::int64_t>(timed_one_in);
        figures_.hand_ns += stands_for * storage::ns_between(started, storage::now());
    }
    return true;
}

/// Mostly nothing waits, and nobody is asked.
void WriteBehindQueue::drain(std::size_t ring) {
    const std::uint64_t end = rings_[ring].end();
    if (!rings_[ring].reached(end) && is_owner()) wait_for(ring, end);
}

void WriteBehindQueue::wait_for(std::size_t ring, std::uint64_t position) {
    const auto there = [&] { return rings_[ring].reached(position); };
    station_of(ring).ring();
    while (!there()) {
        rings_[ring].rest_until(there, patience_us);
        // Who has rung may have died before it woke the thread.
        if (!there() && !step_in(station_of(ring))) wake_all(station_of(ring).bell);
    }
}

void WriteBehindQueue::drain_own() { drain(own_); }

void WriteBehindQueue::drain_node() {
    for (std::size_t ring = 0; ring < rings_.size(); ++ring) drain(ring);
}

BehindFigures WriteBehindQueue::figures() const {
    BehindFigures all = figures_;
    all.operations = rings_[own_].operations() - operations_before_;
    if (has_thread_) all.writer_ns = stations_[my_station_].busy_ns;
    return all;
}

}  // namespace ioweir::engine
