#include "adapters/pnetcdf/tasks.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "adapters/pnetcdf/element_types.hpp"
#include "ncsub/reading.hpp"

namespace ioweir::pnetcdf {
namespace {

using ncsub::Request;
using ncsub::RequestView;

/// The library takes no more in one request.
constexpr std::int64_t most_bytes = 1 << 30;

/// A request that the library has begun, and whose error it becomes.
struct Begun {
    int number = no_request;
    Task* task = nullptr;
};

/// The non-blocking calls of one wait.
class Calls {
public:
    Calls(const File& file, const Subfile& subfile, bool writing) : file_(file), subfile_(subfile), writing_(writing) {}

    /// `count` pieces of a task from `first` on, whose elements begin at `data`.
    void begin(Task& task, std::int64_t first, std::int64_t count, std::byte* data) {
        const bool record = is_record(file_, task.variable);
        const std::int64_t element = ncsub::bytes_of(task.element);
        while (count > 0) {
            std::int64_t together = 0, bytes = 0;
            for (; together < count; ++together) {
                const RequestView piece = task.request(first + together);
                const std::int64_t more = elements_of(piece) * element;
                // The library (1.12) takes wrong buffers for several records of one piece of varn.
                const bool alone = task.strides || (record && piece.count[0] > 1) || more == 0;
                if (together > 0 && (alone || bytes + more > most_bytes)) break;
                bytes += more;
                if (alone) {
                    ++together;
                    break;
                }
            }
            if (bytes > 0)
                together == 1 ? one(task, first, data) : several(task, first, together, data, bytes / element);
            first += together;
            count -= together;
            data += bytes;
        }
    }

    /// Waits for all of them. Collective over the ranks that have the subfile open.
    void wait() {
        std::vector<int> numbers, statuses(begun_.size(), no_error);
        numbers.reserve(begun_.size());
        for (const Begun& one : begun_) numbers.push_back(one.number);
        const int code =
            file_.library->wait_all(subfile_.ncid, static_cast<int>(numbers.size()), numbers.data(), statuses.data());
        // The result is that of some request, or of all together.
        const bool of_one =
            std::any_of(statuses.begin(), statuses.end(), [](int status) { return status != no_error; });
        for (std::size_t i = 0; i < begun_.size(); ++i)
            if (Task& task = *begun_[i].task; task.error == no_error) task.error = of_one ? statuses[i] : code;
    }

private:
    [[nodiscard]] int variable_of(const Task& task) const {
        return file_.in_subfile[static_cast<std::size_t>(task.variable)];
    }

    void one(Task& task, std::int64_t piece, std::byte* data) {
        int number = no_request;
        const int code = begin_request(*file_.library, subfile_.ncid, variable_of(task), task.request(piece),
                                       task.element, data, writing_, number);
        keep(task, code, number);
    }

    void several(Task& task, std::int64_t first, std::int64_t count, std::byte* data, std::int64_t elements) {
        starts_.clear();
        counts_.clear();
        for (std::int64_t i = 0; i < count; ++i) {
            Offset* start = reinterpret_cast<Offset*>(task.starts(first + i));
            starts_.push_back(start);
            counts_.push_back(start + task.dimensions);
        }
        int number = no_request;
        const Library& library = *file_.library;
        const int code =
            writing_ ? library.iput_varn(subfile_.ncid, variable_of(task), static_cast<int>(count), starts_.data(),
                                         counts_.data(), data, elements, mpi_type(task.element), &number)
                     : library.iget_varn(subfile_.ncid, variable_of(task), static_cast<int>(count), starts_.data(),
                                         counts_.data(), data, elements, mpi_type(task.element), &number);
        keep(task, code, number);
    }

    void keep(Task& task, int code, int number) {
        if (task.error == no_error) task.error = code;
        if (number >= 0) begun_.push_back({number, &task});  // else refused, as the error says
    }

    const File& file_;
    const Subfile& subfile_;
    const bool writing_;
    std::vector<Begun> begun_;
    std::vector<Offset*> starts_, counts_;
};

/// What is read of one variable, by all tasks that want something of it.
class Readers {
public:
    Readers(const File& file, const Subfile& subfile, std::span<Task* const> tasks) : tasks_(tasks) {
        const auto variable = static_cast<std::size_t>(tasks.front()->variable);
        const ncsub::Division& division = *file.logical.divisions[variable];
        const ncsub::Variable& about = file.logical.header.variables[variable];
        for (std::size_t d = 0; d < about.dimensions.size(); ++d) {
            const auto k = static_cast<std::size_t>(subfile.number);
            lengths_.push_back(
                static_cast<int>(d) == division.dimension
                    ? division.boundaries[k + 1] - division.boundaries[k]
                    : file.logical.header.dimensions[static_cast<std::size_t>(about.dimensions[d])].length);
        }
        plain_ = element_of(about.type);
        if (is_record(file, static_cast<int>(variable))) {
            Offset records = 0;
            const int error = records_in(file, subfile.ncid, records);
            records_ = records;
            for (Task* task : tasks)
                if (task->error == no_error) task->error = error;
        }
        for (Task* task : tasks) add(*task);
        plan_ = ncsub::plan_reading({requests_, kinds_, static_cast<int>(plain_), lengths_});
    }

    [[nodiscard]] int rounds() const { return plan_.count; }

    void begin(Calls& calls, int round) {
        for (std::size_t i = 0; i < requests_.size();) {
            std::size_t end = i + 1;
            const Place& place = places_[i];
            while (end < requests_.size() && plan_.rounds[end] == plan_.rounds[i] && follows(end)) ++end;
            if (plan_.rounds[i] == round)
                calls.begin(*place.task, place.piece, static_cast<std::int64_t>(end - i), place.data);
            i = end;
        }
        if (round > 0) return;
        for (const ncsub::Together& together : plan_.together) begin_together(calls, together);
    }

    /// What was read for others, too, goes to them.
    void hand_out() {
        const std::int64_t element = ncsub::bytes_of(plain_);
        for (std::size_t i = 0; i < plan_.together.size(); ++i)
            for (const ncsub::Shared& shared : plan_.together[i].shared) {
                const Place& place = places_[shared.request];
                std::memcpy(place.data + shared.to * element, buffers_[i].data.data() + shared.from * element,
                            static_cast<std::size_t>(shared.elements * element));
                if (place.task->error == no_error) place.task->error = buffers_[i].task.error;
            }
        for (const ncsub::Same& same : plan_.same) {
            const Place &place = places_[same.request], &as = places_[same.as];
            std::memcpy(
                place.data, as.data,
                static_cast<std::size_t>(elements_of(requests_[same.request]) * ncsub::bytes_of(place.task->element)));
            if (place.task->error == no_error) place.task->error = as.task->error;
        }
    }

private:
    struct Place {
        Task* task = nullptr;
        std::int64_t piece = 0;
        std::byte* data = nullptr;
    };
    /// What is read together: a task of nobody's.
    struct Buffer {
        std::vector<std::byte> data;
        std::vector<std::int64_t> numbers;
        Task task;
    };

    /// Is this the next piece of the same task, and do its elements lie behind those of the one before?
    [[nodiscard]] bool follows(std::size_t number) const {
        const Place &place = places_[number], &before = places_[number - 1];
        return place.task == before.task && place.piece == before.piece + 1 &&
               place.data == before.data + elements_of(requests_[number - 1]) * ncsub::bytes_of(place.task->element);
    }

    /// Of records that the subfile does not have, zeros are read, as a file has where nothing was written.
    void add(Task& task) {
        std::byte* data = task.data;
        const std::int64_t element = ncsub::bytes_of(task.element);
        for (std::int64_t piece = 0; piece < task.pieces; ++piece) {
            const RequestView request = task.request(piece);
            const std::int64_t wanted = elements_of(request) * element;
            if (records_) task.starts(piece)[task.dimensions] = ncsub::count_within(request, *records_);
            const std::int64_t there = elements_of(request) * element;
            std::fill(data + there, data + wanted, std::byte{0});
            if (there > 0) {
                requests_.push_back(request);
                kinds_.push_back(static_cast<int>(task.element));
                places_.push_back({&task, piece, data});
            }
            data += wanted;
        }
    }

    void begin_together(Calls& calls, const ncsub::Together& together) {
        Buffer& buffer = buffers_.emplace_back();
        const std::int64_t element = ncsub::bytes_of(plain_);
        buffer.data.resize(static_cast<std::size_t>(together.elements * element));
        Task& task = buffer.task;
        task.variable = tasks_.front()->variable;
        task.element = plain_;
        task.dimensions = lengths_.size();
        for (const Request& whole : together.requests)
            for (const Request& request : ncsub::cut(whole, element, most_bytes)) {
                buffer.numbers.insert(buffer.numbers.end(), request.start.begin(), request.start.end());
                buffer.numbers.insert(buffer.numbers.end(), request.count.begin(), request.count.end());
                ++task.pieces;
            }
        task.numbers = buffer.numbers.data();
        calls.begin(task, 0, task.pieces, buffer.data.data());
    }

    std::span<Task* const> tasks_;
    ncsub::Element plain_ = ncsub::Element::schar;
    std::optional<std::int64_t> records_;  ///< of the subfile, where the variable has any
    std::vector<std::int64_t> lengths_;
    std::vector<RequestView> requests_;
    std::vector<int> kinds_;
    std::vector<Place> places_;
    ncsub::Reading plan_;
    std::deque<Buffer> buffers_;  // which stay where they are
};

}  // namespace

std::vector<Task*> by_subfile(const File& file, std::vector<Task>& tasks) {
    std::vector<Task*> sorted;
    sorted.reserve(tasks.size());
    for (Task& task : tasks) sorted.push_back(&task);
    // Variables without records lie before those with them.
    const auto place = [&](const Task* task) {
        return std::tuple(task->subfile, is_record(file, task->variable), task->variable);
    };
    const auto before = [&](const Task* a, const Task* b) { return place(a) < place(b); };
    if (!std::is_sorted(sorted.begin(), sorted.end(), before)) std::stable_sort(sorted.begin(), sorted.end(), before);
    return sorted;
}

std::span<Task* const> of_subfile(std::span<Task* const> sorted, std::int64_t subfile) {
    const auto [begin, end] =
        std::ranges::equal_range(sorted, subfile, {}, [](const Task* task) { return task->subfile; });
    return {begin, end};
}

void carry_out_tasks(const File& file, const Subfile& subfile, MPI_Comm group, std::span<Task* const> tasks,
                     bool writing) {
    if (writing) {
        Calls calls(file, subfile, true);
        for (Task* task : tasks) calls.begin(*task, 0, task->pieces, task->data);
        calls.wait();
        return;
    }
    std::deque<Readers> readers;
    int rounds = 1;
    for (std::size_t begin = 0; begin < tasks.size();) {
        std::size_t end = begin;
        while (end < tasks.size() && tasks[end]->variable == tasks[begin]->variable) ++end;
        rounds = std::max(rounds, readers.emplace_back(file, subfile, tasks.subspan(begin, end - begin)).rounds());
        begin = end;
    }
    PMPI_Allreduce(MPI_IN_PLACE, &rounds, 1, MPI_INT, MPI_MAX, group);
    for (int round = 0; round < rounds; ++round) {
        Calls calls(file, subfile, false);
        for (Readers& one : readers) one.begin(calls, round);
        calls.wait();
    }
    for (Readers& one : readers) one.hand_out();
}

int begin_request(const Library& library, int ncid, int variable, const RequestView& request, ncsub::Element element,
                  std::byte* data, bool writing, int& number) {
    static_assert(sizeof(Offset) == sizeof(std::int64_t));
    // A scalar has no numbers, but the lists must be there.
    static const Offset none = 0;
    const auto list = [&](const std::int64_t* numbers) {
        return request.dimensions > 0 ? reinterpret_cast<const Offset*>(numbers) : &none;
    };
    const Offset *start = list(request.start), *count = list(request.count), *stride = list(request.stride);
    bool unit = true;
    for (std::size_t d = 0; d < request.dimensions; ++d) unit = unit && request.step(d) == 1;
    const MPI_Datatype type = mpi_type(element);
    const Offset elements = elements_of(request);
    if (writing && unit) return library.iput_vara(ncid, variable, start, count, data, elements, type, &number);
    if (writing) return library.iput_vars(ncid, variable, start, count, stride, data, elements, type, &number);
    if (unit) return library.iget_vara(ncid, variable, start, count, data, elements, type, &number);
    return library.iget_vars(ncid, variable, start, count, stride, data, elements, type, &number);
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
