#include "adapters/pnetcdf/tasks.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "adapters/pnetcdf/element_types.hpp"

namespace ioweir::pnetcdf {
namespace {

using ncsub::Request;

/// Tasks of one subfile, as the library can be handed them.
struct Batches {
    std::vector<std::vector<Task*>> rounds;         ///< each for one wait
    std::vector<std::pair<Task*, Task*>> the_same;  ///< wants what the second reads
};

/// All that is written goes in one batch. The library (1.12) does not fill two buffers with the same elements of a file in one wait: what
/// several ranks read is read once, and what meets without being the same, one after the other.
Batches batches_of(std::vector<Task>& tasks, std::int64_t subfile, bool writing) {
    Batches batches;
    batches.rounds.resize(1);
    for (Task& task : tasks) {
        if (task.subfile != subfile || elements_of(task.request) == 0)
            continue;  // empty: of records that are not there
        if (writing) {
            batches.rounds[0].push_back(&task);
            continue;
        }
        std::size_t round = 0;
        Task* same = nullptr;
        for (; round < batches.rounds.size() && same == nullptr; ++round) {
            bool meets = false;
            for (Task* other : batches.rounds[round]) {
                if (other->variable != task.variable) continue;
                if (other->element == task.element && other->request == task.request) same = other;
                meets = meets || ncsub::may_meet(other->request, task.request);
            }
            if (!meets) break;
        }
        if (same != nullptr) {
            batches.the_same.emplace_back(&task, same);
            continue;
        }
        if (round == batches.rounds.size()) batches.rounds.emplace_back();
        batches.rounds[round].push_back(&task);
    }
    return batches;
}

/// Hands tasks to the library as non-blocking calls, and waits for all of them at once. Collective over the group.
void carry_out_batch(const File& file, const Subfile& subfile, const std::vector<Task*>& tasks, bool writing) {
    std::vector<int> requests, statuses;
    std::vector<Task*> asked;
    for (Task* one : tasks) {
        Task& task = *one;
        const int variable = file.in_subfile[static_cast<std::size_t>(task.variable)];
        int request = no_request;
        task.error = begin_request(*file.library, subfile.ncid, variable, task.request, task.element, task.data,
                                   writing, request);
        if (request < 0) continue;  // refused, as the error says
        requests.push_back(request);
        asked.push_back(&task);
    }
    statuses.resize(requests.size(), no_error);
    const int code =
        file.library->wait_all(subfile.ncid, static_cast<int>(requests.size()), requests.data(), statuses.data());
    // The result is that of some request, or of all together.
    const bool of_one = std::any_of(statuses.begin(), statuses.end(), [](int status) { return status != no_error; });
    for (std::size_t i = 0; i < asked.size(); ++i)
        if (asked[i]->error == no_error) asked[i]->error = of_one ? statuses[i] : code;
}

/// What tasks read of records that the subfile does not have: zeros, as a file has where nothing was written.
void leave_out_missing_records(const File& file, const Subfile& subfile, std::vector<Task>& tasks) {
    if (file.record_in_subfiles < 0) return;
    Offset records = 0;
    const int error = records_in(file, subfile.ncid, records);
    for (Task& task : tasks) {
        if (task.subfile != subfile.number || !is_record(file, task.variable)) continue;
        if (task.error == no_error) task.error = error;
        task.request = ncsub::within(task.request, records);
        std::fill(task.data + elements_of(task.request) * ncsub::bytes_of(task.element), task.data + task.bytes,
                  std::byte{0});
    }
}

}  // namespace

void carry_out_tasks(const File& file, const Subfile& subfile, MPI_Comm group, std::vector<Task>& tasks, bool writing) {
    if (!writing) leave_out_missing_records(file, subfile, tasks);
    Batches batches = batches_of(tasks, subfile.number, writing);
    auto rounds = static_cast<int>(batches.rounds.size());
    if (!writing) PMPI_Allreduce(MPI_IN_PLACE, &rounds, 1, MPI_INT, MPI_MAX, group);
    batches.rounds.resize(static_cast<std::size_t>(rounds));
    for (const auto& round : batches.rounds) carry_out_batch(file, subfile, round, writing);
    for (const auto& [task, read] : batches.the_same) {
        std::copy_n(read->data, elements_of(read->request) * ncsub::bytes_of(read->element), task->data);
        task->error = read->error;
    }
}

int begin_request(const Library& library, int ncid, int variable, const Request& request, ncsub::Element element,
                  std::byte* data, bool writing, int& number) {
    const bool unit =
        std::all_of(request.stride.begin(), request.stride.end(), [](std::int64_t stride) { return stride == 1; });
    // A scalar has no numbers, but the lists must be there.
    const auto list = [](const std::vector<std::int64_t>& numbers) {
        std::vector<Offset> copy(numbers.begin(), numbers.end());
        copy.push_back(0);
        return copy;
    };
    const std::vector<Offset> start = list(request.start), count = list(request.count), stride = list(request.stride);
    const MPI_Datatype type = mpi_type(element);
    const Offset elements = elements_of(request);
    if (writing && unit)
        return library.iput_vara(ncid, variable, start.data(), count.data(), data, elements, type, &number);
    if (writing)
        return library.iput_vars(ncid, variable, start.data(), count.data(), stride.data(), data, elements, type,
                                 &number);
    if (unit) return library.iget_vara(ncid, variable, start.data(), count.data(), data, elements, type, &number);
    return library.iget_vars(ncid, variable, start.data(), count.data(), stride.data(), data, elements, type, &number);
}

int failure_in(const File& file, const std::vector<Task>& tasks) {
    int failure = no_error;
    std::set<std::int64_t> said;
    for (const Task& task : tasks) {
        if (task.error == no_error || task.error == error_range) continue;
        if (failure == no_error) failure = task.error;
        if (said.insert(task.subfile).second)
            complain_here(file, "subfile " + ncsub::subfile_path(file.logical, file.path, task.subfile) +
                                    " failed: " + file.library->strerror(task.error));
    }
    return failure;
}

}  // namespace ioweir::pnetcdf
