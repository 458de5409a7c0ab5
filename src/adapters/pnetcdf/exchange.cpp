#include "adapters/pnetcdf/exchange.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "adapters/pnetcdf/tasks.hpp"

namespace ioweir::pnetcdf {
namespace {

using ncsub::Piece;
using ncsub::Request;

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

/// One exchange.
class Exchange {
public:
    Exchange(File& file, std::span<Wanted> wanted, bool writing, std::int64_t records)
        : file_(file),
          wanted_(wanted),
          writing_(writing),
          records_(records),
          words_(static_cast<std::size_t>(file.ranks)),
          data_(words_.size()),
          data_bytes_(words_.size(), 0),
          their_words_(words_.size()),
          their_data_(words_.size()) {}

    int run() {
        std::vector<Task> tasks;
        if (!give(tasks)) return error_file;
        {
            const Timed timed(file_.clocks.storage);
            for (const Subfile& subfile : file_.subfiles) carry_out_tasks(file_, subfile, file_.group, tasks, writing_);
        }
        const int failure = agree(file_, failure_in(file_, tasks));
        const Timed timed(file_.clocks.exchange, &file_.clocks.exchange_processor);
        return answer(tasks) ? failure : error_file;
    }
    /// The most of all ranks.
    [[nodiscard]] std::int64_t records() const { return records_; }

private:
    /// Pieces go to who carries them out. False: a message was lost.
    bool give(std::vector<Task>& tasks) {
        const Timed timed(file_.clocks.exchange, &file_.clocks.exchange_processor);
        for (std::size_t i = 0; i < wanted_.size(); ++i) add(i);
        if (writing_) gather();
        if (!tell() || !deliver()) return false;
        tasks = all_tasks();
        return true;
    }

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

    /// How much each rank is about to get from each, and how many records there will be: the one meeting of all.
    bool tell() {
        std::vector<std::int64_t> mine, theirs(3 * words_.size());
        const std::int64_t records = records_;
        for (std::size_t rank = 0; rank < words_.size(); ++rank)
            mine.insert(mine.end(), {std::ssize(words_[rank]), data_bytes_[rank], records});
        if (PMPI_Alltoall(mine.data(), 3, MPI_INT64_T, theirs.data(), 3, MPI_INT64_T, file_.comm) != MPI_SUCCESS)
            return false;
        for (std::size_t rank = 0; rank < words_.size(); ++rank) {
            their_words_[rank].resize(static_cast<std::size_t>(theirs[3 * rank]));
            their_data_[rank].resize(static_cast<std::size_t>(theirs[3 * rank + 1]));
            records_ = std::max(records_, theirs[3 * rank + 2]);
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
    File& file_;
    std::span<Wanted> wanted_;
    const bool writing_;
    std::int64_t records_;
    std::vector<Sent> sent_;
    std::vector<std::vector<std::int64_t>> words_;  ///< for each rank
    std::vector<Bytes> data_;                       ///< for each rank; reading: from each rank
    std::vector<std::int64_t> data_bytes_;
    std::vector<std::vector<std::int64_t>> their_words_;
    std::vector<Bytes> their_data_;
};

}  // namespace

int exchange(File& file, std::span<Wanted> wanted, bool writing, std::int64_t records) {
    const Timed timed(file.clocks.calls);
    Exchange exchange(file, wanted, writing, records);
    const int error = exchange.run();
    file.records = std::max(file.records, exchange.records());
    return error == no_error && writing ? keep_records(file) : error;
}

}  // namespace ioweir::pnetcdf
