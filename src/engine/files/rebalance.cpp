#include "engine/files/rebalance.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "container/sharing/generations.hpp"
#include "engine/files/header_file_lock.hpp"
#include "engine/parts.hpp"
#include "planner/plan.hpp"

namespace ioweir::engine {
namespace {

using container::Container;

enum class Answer : std::int64_t { changed, not_now, never };

/// What all ranks together have written to each subfile in use since the last call.
std::vector<probe::Work> work_of_all(Handle& handle, const Container::InUse& in_use) {
    const std::vector<Container::Work> own = handle.container->take_work();
    std::vector<std::int64_t> figures(static_cast<std::size_t>(2 * in_use.count), 0);
    for (std::int64_t i = 0; i < in_use.count; ++i) {
        const auto file = static_cast<std::size_t>(in_use.first + i);
        if (file >= own.size()) continue;
        figures[static_cast<std::size_t>(2 * i)] = own[file].bytes;
        figures[static_cast<std::size_t>(2 * i + 1)] = own[file].ns;
    }
    return sum_of_work(handle, figures, static_cast<std::size_t>(in_use.count));
}

/// Rank 0: deals the rest of the stripes over the others, if nobody else writes.
Answer divide_anew(Engine& engine, Handle& handle, const std::vector<std::int64_t>& files, std::string& why) {
    const StorageScope scope(engine);
    const HeaderFileLock lock(handle.descriptor.number, handle.path);
    if (lock.problem()) {
        why = lock.problem()->message();
        return Answer::not_now;
    }
    const auto generations = container::generations_in(handle.container->directory());
    if (!generations) {
        why = generations.error().message();
        return Answer::never;
    }
    const auto& open = generations.value().open;
    if (open.size() != 1 || open.front() != handle.role.generation) {
        why = "another handle or job has the file open for writing, or has died while it had";
        return Answer::not_now;
    }
    if (const auto problem = handle.container->redivide(files)) {
        why = problem->message();
        return Answer::not_now;
    }
    return Answer::changed;
}

std::shared_ptr<Rebalance> make_rebalance(const Handle& handle, std::int64_t targets) {
    const planner::Strategy& strategy = handle.strategy;
    const std::int64_t round = std::max({std::int64_t{1}, strategy.stripe.size_bytes, strategy.buffer_bytes});
    return std::make_shared<Rebalance>(static_cast<std::size_t>(targets), round * targets);
}

}  // namespace

std::vector<probe::Work> sum_of_work(const Handle& handle, std::vector<std::int64_t>& figures, std::size_t targets) {
    if (handle.size > 1)
        PMPI_Allreduce(MPI_IN_PLACE, figures.data(), static_cast<int>(figures.size()), MPI_INT64_T, MPI_SUM,
                       handle.comm);
    std::vector<probe::Work> all;
    for (std::size_t i = 0; i < targets; ++i) all.push_back({figures[2 * i], figures[2 * i + 1]});
    return all;
}

void choose_part(Rebalance& rebalance, const std::vector<probe::Work>& work) {
    constexpr std::int64_t storage_ns = 100'000'000;
    constexpr std::int64_t most = std::int64_t{1} << 50;
    const std::int64_t bytes = probe::bytes_in(work, storage_ns);
    if (bytes == 0 && rebalance.knows_rate) return;
    rebalance.knows_rate = bytes > 0;
    const std::int64_t wanted = bytes > 0 ? bytes : std::min(most, 2 * rebalance.part_bytes);
    rebalance.part_bytes = std::max<std::int64_t>(1, wanted / rebalance.row_bytes) * rebalance.row_bytes;
}

std::string speeds_of(const std::vector<std::size_t>& slow, const std::vector<probe::Work>& work, const char* of) {
    std::string text;
    for (const std::size_t i : slow) {
        const double mib_per_s = static_cast<double>(work[i].bytes) / static_cast<double>(work[i].ns) * 1e9 / (1 << 20);
        text += (text.empty() ? "" : ", ") + std::to_string(i) + " (" + std::to_string(mib_per_s).substr(0, 5) +
                " MiB/s" + of + ")";
    }
    return text;
}

void begin_rebalance(const Engine& engine, Handle& handle, const policy::FileRule* rule) {
    if (rule == nullptr || !rule->rebalance || !handle.writable || !handle.container) return;
    const bool logs = handle.strategy.mapping.kind == planner::MappingKind::log;
    if (!logs && handle.strategy.mapping.kind != planner::MappingKind::subfiles) return;
    const Container::InUse in_use = handle.container->in_use();
    std::string why;
    if (!handle.one_thread) why = "with MPI_THREAD_MULTIPLE a rank may be writing at any time";
    if (!logs && in_use.count < 2) why = "there is one subfile only";
    if (logs && handle.log_places.size() < 2) why = "logs lie on one target only, or on none";
    if (!why.empty()) {
        if (handle.rank == 0) note(engine, format::NoteCode::message, handle.path, 0, "rebalance is not used: " + why);
        return;
    }
    if (logs) {
        begin_rebalance_of_logs(handle);
        return;
    }
    handle.container->watch_work();
    handle.rebalance = make_rebalance(handle, in_use.count);
}

bool rebalance(Engine& engine, Handle& handle) {
    if (!handle.rebalance->left.empty()) return rebalance_logs(engine, handle);
    const Container::InUse in_use = handle.container->in_use();
    const std::vector<probe::Work> work = work_of_all(handle, in_use);
    // The same figures, and so the same answer, on every rank.
    const std::vector<std::size_t> slow = handle.rebalance->stragglers.add(work);
    if (slow.empty()) {
        choose_part(*handle.rebalance, work);
        return false;
    }
    std::vector<std::int64_t> files;
    for (std::int64_t i = 0; i < in_use.count; ++i) {
        if (!std::binary_search(slow.begin(), slow.end(), static_cast<std::size_t>(i)))
            files.push_back(in_use.first + i);
    }
    std::array<std::int64_t, 2> told{};
    std::string why;
    if (handle.rank == 0) {
        const Answer answer = divide_anew(engine, handle, files, why);
        told[0] = static_cast<std::int64_t>(answer);
        if (answer == Answer::changed) told[1] = handle.container->in_use().first;
        if (answer == Answer::changed || !handle.rebalance->said)
            note(engine, format::NoteCode::message, handle.path, 0,
                 "target of subfile " + speeds_of(slow, work, " a writer") +
                     (answer == Answer::changed ? " has fallen behind and gets no further stripes"
                                                : " has fallen behind, and is used all the same: " + why));
    }
    if (handle.size > 1) PMPI_Bcast(told.data(), static_cast<int>(told.size()), MPI_INT64_T, 0, handle.comm);
    if (told[0] == static_cast<std::int64_t>(Answer::never)) {
        handle.rebalance = nullptr;
        return false;
    }
    if (told[0] != static_cast<std::int64_t>(Answer::changed)) {
        handle.rebalance = make_rebalance(handle, in_use.count);
        handle.rebalance->said = true;
        return false;
    }
    int error = 0;
    {
        const StorageScope scope(engine);
        error = handle.container->reload(told[1]);
    }
    if (error != 0) owe_error(handle, error_class(error));
    if (handle.size > 1) PMPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_INT, MPI_MAX, handle.comm);
    const Container::InUse next = handle.container->in_use();
    // An aggregator for each target, as before: what follows counts the targets that are left.
    if (error == 0) handle.stored.count = handle.strategy.stripe.count = next.count;
    handle.rebalance = error == 0 && next.count > 1 ? make_rebalance(handle, next.count) : nullptr;
    return true;
}

std::int64_t WatchedParts::bytes() const { return handle_.rebalance ? handle_.rebalance->part_bytes : INT64_MAX; }

Parts::Next WatchedParts::go_on() {
    const bool elsewhere = handle_.rebalance && rebalance(engine_, handle_);
    return {planner::within_group(handle_.strategy), elsewhere};
}

}  // namespace ioweir::engine
