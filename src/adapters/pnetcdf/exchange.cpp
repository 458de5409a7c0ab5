#include "adapters/pnetcdf/exchange.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "adapters/pnetcdf/element_types.hpp"

namespace ioweir::pnetcdf {
namespace {

using ncsub::Piece;
using ncsub::Request;

/// A piece of somebody's request, as the rank sees it that carries it out.
struct Task {
    std::int64_t source = 0;
    int variable = 0;
    ncsub::Element element = ncsub::Element::schar;
    std::int64_t subfile = 0;
    Request request;
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
    int error = no_error;
};

/// Where a piece of ours has gone.
struct Sent {
    std::size_t wanted = 0;
    Piece piece;
    std::int64_t to = 0;
    std::int64_t bytes = 0;
    std::int64_t place = 0;  ///< of its data among all that go there
};

/// The words that describe a task: variable, element, subfile, dimensions, start, count, stride, bytes.
void put_words(std::vector<std::int64_t>& words, const Sent& sent, const Wanted& wanted) {
    const Request& request = sent.piece.request;
    words.insert(words.end(), {wanted.variable, static_cast<std::int64_t>(wanted.element), sent.piece.subfile,
                               std::ssize(request.start)});
    for (const auto* numbers : {&request.start, &request.count, &request.stride})
        words.insert(words.end(), numbers->begin(), numbers->end());
    words.push_back(sent.bytes);
}

std::vector<Task> tasks_in(const std::vector<std::int64_t>& words, std::int64_t source, std::byte* data) {
    std::vector<Task> tasks;
    for (std::size_t at = 0; at < words.size();) {
        Task task;
        task.source = source;
        task.variable = static_cast<int>(words[at]);
        task.element = static_cast<ncsub::Element>(words[at + 1]);
        task.subfile = words[at + 2];
        const auto dimensions = static_cast<std::ptrdiff_t>(words[at + 3]);
        auto next = words.begin() + static_cast<std::ptrdiff_t>(at) + 4;
        for (auto* numbers : {&task.request.start, &task.request.count, &task.request.stride}) {
            numbers->assign(next, next + dimensions);
            next += dimensions;
        }
        task.bytes = *next;
        task.data = data;
        data += task.bytes;
        at += static_cast<std::size_t>(3 * dimensions) + 5;
        tasks.push_back(std::move(task));
    }
    return tasks;
}

/// Messages of any length, in parts that MPI can count.
class Messages {
public:
    explicit Messages(const File& file) : file_(file) {}
    void send(const void* data, std::int64_t bytes, std::int64_t to, int tag) {
        for_each_part(bytes, [&](std::int64_t at, int count) {
            return PMPI_Isend(static_cast<const std::byte*>(data) + at, count, MPI_BYTE, static_cast<int>(to), tag,
                              file_.comm, &requests_.back());
        });
    }
    void receive(void* data, std::int64_t bytes, std::int64_t from, int tag) {
        for_each_part(bytes, [&](std::int64_t at, int count) {
            return PMPI_Irecv(static_cast<std::byte*>(data) + at, count, MPI_BYTE, static_cast<int>(from), tag,
                              file_.comm, &requests_.back());
        });
    }
    /// False: a message was lost.
    bool wait() {
        const int code = PMPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        requests_.clear();
        return code == MPI_SUCCESS && !failed_;
    }

private:
    template <typename Start>
    void for_each_part(std::int64_t bytes, Start&& start) {
        constexpr std::int64_t most = 1 << 30;
        for (std::int64_t at = 0; at < bytes; at += most) {
            requests_.push_back(MPI_REQUEST_NULL);
            if (start(at, static_cast<int>(std::min(most, bytes - at))) != MPI_SUCCESS) failed_ = true;
        }
    }

    const File& file_;
    std::vector<MPI_Request> requests_;
    bool failed_ = false;
};

constexpr int words_tag = 1;
constexpr int data_tag = 2;
constexpr int answer_tag = 3;
constexpr int answer_data_tag = 4;

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
        if (task.subfile != subfile) continue;
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
    const Library& library = *file.library;
    std::vector<int> requests, statuses;
    std::vector<Task*> asked;
    for (Task* one : tasks) {
        Task& task = *one;
        const int variable = file.in_subfile[static_cast<std::size_t>(task.variable)];
        const Request& r = task.request;
        const bool unit = std::all_of(r.stride.begin(), r.stride.end(), [](std::int64_t s) { return s == 1; });
        const std::vector<Offset> start(r.start.begin(), r.start.end()), count(r.count.begin(), r.count.end()),
            stride(r.stride.begin(), r.stride.end());
        const MPI_Datatype type = mpi_type(task.element);
        const Offset elements = ncsub::elements_of(r);
        int request = -1;
        if (writing && unit)
            task.error = library.iput_vara(subfile.ncid, variable, start.data(), count.data(), task.data, elements,
                                           type, &request);
        else if (writing)
            task.error = library.iput_vars(subfile.ncid, variable, start.data(), count.data(), stride.data(), task.data,
                                           elements, type, &request);
        else if (unit)
            task.error = library.iget_vara(subfile.ncid, variable, start.data(), count.data(), task.data, elements,
                                           type, &request);
        else
            task.error = library.iget_vars(subfile.ncid, variable, start.data(), count.data(), stride.data(), task.data,
                                           elements, type, &request);
        if (request < 0) continue;  // refused, as the error says
        requests.push_back(request);
        asked.push_back(&task);
    }
    statuses.resize(requests.size(), no_error);
    const int code =
        library.wait_all(subfile.ncid, static_cast<int>(requests.size()), requests.data(), statuses.data());
    // The result is that of some request, or of all together.
    const bool of_one = std::any_of(statuses.begin(), statuses.end(), [](int status) { return status != no_error; });
    for (std::size_t i = 0; i < asked.size(); ++i)
        if (asked[i]->error == no_error) asked[i]->error = of_one ? statuses[i] : code;
}

/// Collective over the group, subfile by subfile.
void carry_out_tasks(const File& file, std::vector<Task>& tasks, bool writing) {
    for (const Subfile& subfile : file.subfiles) {
        Batches batches = batches_of(tasks, subfile.number, writing);
        auto rounds = static_cast<int>(batches.rounds.size());
        if (!writing) PMPI_Allreduce(MPI_IN_PLACE, &rounds, 1, MPI_INT, MPI_MAX, file.group);
        batches.rounds.resize(static_cast<std::size_t>(rounds));
        for (const auto& round : batches.rounds) carry_out_batch(file, subfile, round, writing);
        for (const auto& [task, read] : batches.the_same) {
            std::copy_n(read->data, read->bytes, task->data);
            task->error = read->error;
        }
    }
}

/// One exchange.
class Exchange {
public:
    Exchange(const File& file, std::span<Wanted> wanted, bool writing)
        : file_(file),
          wanted_(wanted),
          writing_(writing),
          words_(static_cast<std::size_t>(file.ranks)),
          data_(words_.size()),
          data_bytes_(words_.size(), 0),
          their_words_(words_.size()),
          their_data_(words_.size()) {}

    int run() {
        for (std::size_t i = 0; i < wanted_.size(); ++i) add(i);
        if (writing_) gather();
        if (!tell() || !deliver()) return error_file;
        std::vector<Task> tasks = all_tasks();
        carry_out_tasks(file_, tasks, writing_);
        return answer(tasks) ? no_error : error_file;
    }

private:
    void add(std::size_t number) {
        const Wanted& wanted = wanted_[number];
        const ncsub::Division& division = division_of(wanted);
        for (Piece& piece : split(wanted.request, division.dimension, division.boundaries)) {
            const std::int64_t to = file_.groups().delegate_of(file_.rank, piece.subfile);
            const std::int64_t bytes = elements_of(piece.request) * ncsub::bytes_of(wanted.element);
            std::int64_t& place = data_bytes_[static_cast<std::size_t>(to)];
            sent_.push_back({number, std::move(piece), to, bytes, place});
            place += bytes;
            put_words(words_[static_cast<std::size_t>(to)], sent_.back(), wanted);
        }
    }

    void gather() {
        for (std::size_t to = 0; to < data_.size(); ++to) data_[to].resize(static_cast<std::size_t>(data_bytes_[to]));
        for (const Sent& sent : sent_) {
            const Wanted& wanted = wanted_[sent.wanted];
            ncsub::gather(wanted.request, division_of(wanted).dimension, sent.piece,
                          static_cast<std::size_t>(ncsub::bytes_of(wanted.element)), wanted.from,
                          data_[static_cast<std::size_t>(sent.to)].data() + sent.place);
        }
    }

    /// How much each rank is about to get from each: the one meeting of all.
    bool tell() {
        std::vector<std::int64_t> mine, theirs(2 * words_.size());
        for (std::size_t rank = 0; rank < words_.size(); ++rank) {
            mine.push_back(std::ssize(words_[rank]));
            mine.push_back(data_bytes_[rank]);
        }
        if (PMPI_Alltoall(mine.data(), 2, MPI_INT64_T, theirs.data(), 2, MPI_INT64_T, file_.comm) != MPI_SUCCESS)
            return false;
        for (std::size_t rank = 0; rank < words_.size(); ++rank) {
            their_words_[rank].resize(static_cast<std::size_t>(theirs[2 * rank]));
            their_data_[rank].resize(static_cast<std::size_t>(theirs[2 * rank + 1]));
        }
        return true;
    }

    bool deliver() {
        Messages messages(file_);
        constexpr std::int64_t word = sizeof(std::int64_t);
        for_each_other([&](std::size_t rank) {
            const auto number = static_cast<std::int64_t>(rank);
            messages.receive(their_words_[rank].data(), std::ssize(their_words_[rank]) * word, number, words_tag);
            if (writing_) messages.receive(their_data_[rank].data(), std::ssize(their_data_[rank]), number, data_tag);
        });
        for_each_other([&](std::size_t rank) {
            const auto number = static_cast<std::int64_t>(rank);
            messages.send(words_[rank].data(), std::ssize(words_[rank]) * word, number, words_tag);
            if (writing_) messages.send(data_[rank].data(), std::ssize(data_[rank]), number, data_tag);
        });
        const auto me = static_cast<std::size_t>(file_.rank);
        their_words_[me] = words_[me];
        if (writing_) their_data_[me].swap(data_[me]);
        return messages.wait();
    }

    std::vector<Task> all_tasks() {
        std::vector<Task> tasks;
        for (std::size_t rank = 0; rank < words_.size(); ++rank)
            for (Task& task : tasks_in(their_words_[rank], static_cast<std::int64_t>(rank), their_data_[rank].data()))
                tasks.push_back(std::move(task));
        return tasks;
    }

    /// Errors, and what was read, in the order of the tasks.
    bool answer(const std::vector<Task>& tasks) {
        std::vector<std::vector<int>> errors(words_.size()), our_errors(words_.size());
        for (const Task& task : tasks) errors[static_cast<std::size_t>(task.source)].push_back(task.error);
        for (const Sent& sent : sent_) our_errors[static_cast<std::size_t>(sent.to)].push_back(no_error);
        if (!writing_)
            for (std::size_t rank = 0; rank < data_.size(); ++rank)
                data_[rank].resize(static_cast<std::size_t>(data_bytes_[rank]));
        Messages messages(file_);
        constexpr std::int64_t word = sizeof(int);
        for_each_other([&](std::size_t rank) {
            const auto number = static_cast<std::int64_t>(rank);
            messages.receive(our_errors[rank].data(), std::ssize(our_errors[rank]) * word, number, answer_tag);
            if (!writing_) messages.receive(data_[rank].data(), std::ssize(data_[rank]), number, answer_data_tag);
        });
        for_each_other([&](std::size_t rank) {
            const auto number = static_cast<std::int64_t>(rank);
            messages.send(errors[rank].data(), std::ssize(errors[rank]) * word, number, answer_tag);
            if (!writing_)
                messages.send(their_data_[rank].data(), std::ssize(their_data_[rank]), number, answer_data_tag);
        });
        const auto me = static_cast<std::size_t>(file_.rank);
        our_errors[me] = errors[me];
        if (!writing_) data_[me].swap(their_data_[me]);
        if (!messages.wait()) return false;
        take(our_errors);
        return true;
    }

    void take(const std::vector<std::vector<int>>& errors) {
        std::vector<std::size_t> next(errors.size(), 0);
        for (const Sent& sent : sent_) {
            const auto to = static_cast<std::size_t>(sent.to);
            Wanted& wanted = wanted_[sent.wanted];
            const int error = errors[to][next[to]++];
            if (wanted.error == no_error) wanted.error = error;
            if (writing_) continue;
            ncsub::scatter(wanted.request, division_of(wanted).dimension, sent.piece,
                           static_cast<std::size_t>(ncsub::bytes_of(wanted.element)), data_[to].data() + sent.place,
                           wanted.to);
        }
    }

    [[nodiscard]] const ncsub::Division& division_of(const Wanted& wanted) const {
        return *file_.logical.divisions[static_cast<std::size_t>(wanted.variable)];
    }

    template <typename Visit>
    void for_each_other(Visit&& visit) {
        for (int i = 1; i < file_.ranks; ++i) visit(static_cast<std::size_t>((file_.rank + i) % file_.ranks));
    }

    using Bytes = std::vector<std::byte>;
    const File& file_;
    std::span<Wanted> wanted_;
    const bool writing_;
    std::vector<Sent> sent_;
    std::vector<std::vector<std::int64_t>> words_;  ///< for each rank
    std::vector<Bytes> data_;                       ///< for each rank; reading: from each rank
    std::vector<std::int64_t> data_bytes_;
    std::vector<std::vector<std::int64_t>> their_words_;
    std::vector<Bytes> their_data_;
};

}  // namespace

int exchange(const File& file, std::span<Wanted> wanted, bool writing) { return Exchange(file, wanted, writing).run(); }

}  // namespace ioweir::pnetcdf
