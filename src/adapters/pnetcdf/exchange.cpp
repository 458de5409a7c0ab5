#include "adapters/pnetcdf/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "adapters/pnetcdf/early.hpp"
#include "adapters/pnetcdf/element_types.hpp"
#include "adapters/pnetcdf/tasks.hpp"

namespace ioweir::pnetcdf {
namespace {

using ncsub::Piece;
using ncsub::Request;

/// Where a piece of ours has gone.
struct Sent {
    std::size_t wanted = 0;
    ncsub::Slice slice;
    std::int64_t to = 0;
    std::int64_t task = 0;  ///< among those that go there
    std::int64_t bytes = 0;
    std::int64_t place = 0;  ///< of its data among all that go there
};

/// Uninitialised: every byte is written before it is read.
class Bytes {
public:
    Bytes() = default;
    explicit Bytes(std::int64_t size) : size_(size) {
        if (size > 0) data_.reset(new std::byte[static_cast<std::size_t>(size)]);
    }
    [[nodiscard]] std::byte* data() { return data_.get(); }
    [[nodiscard]] const std::byte* data() const { return data_.get(); }
    [[nodiscard]] std::int64_t size() const { return size_; }

private:
    std::unique_ptr<std::byte[]> data_;
    std::int64_t size_ = 0;
};

/// The tasks that go to one rank, in words: of each what Head has, then the numbers of its pieces.
class Outbox {
public:
    struct Head {
        std::int64_t variable = 0;
        std::int64_t element = 0;
        std::int64_t subfile = 0;
        std::int64_t strides = 0;  ///< 1: pieces have some
        std::int64_t pieces = 0;
        static constexpr std::size_t words = 5;
        [[nodiscard]] bool same_task(const Head& other) const {
            return variable == other.variable && element == other.element && subfile == other.subfile &&
                   strides == other.strides;
        }
    };

    /// Adds a piece, whose first index along the divided dimension is `first` in its subfile; the number of its task. Pieces of several accesses are
    /// one task unless values may not fit (`converts`), which is an error of one of them.
    std::int64_t add(const Head& head, int access, bool converts, const ncsub::RequestView& piece, std::size_t divided,
                     std::int64_t first) {
        if (tasks_ == 0 || !head_.same_task(head) || (converts && access != access_)) {
            head_ = head;
            head_.pieces = 0;
            access_ = access;
            at_ = words.size();
            words.resize(at_ + Head::words);
            ++tasks_;
        }
        ++head_.pieces;
        std::memcpy(&words[at_], &head_, sizeof head_);
        const std::size_t start = words.size(), dimensions = piece.dimensions;
        words.insert(words.end(), piece.start, piece.start + dimensions);
        words.insert(words.end(), piece.count, piece.count + dimensions);
        if (head.strides != 0) words.insert(words.end(), piece.stride, piece.stride + dimensions);
        words[start + divided] = first;
        return tasks_ - 1;
    }
    [[nodiscard]] std::int64_t tasks() const { return tasks_; }

    std::vector<std::int64_t> words;

private:
    Head head_;
    int access_ = 0;
    std::size_t at_ = 0;
    std::int64_t tasks_ = 0;
};
static_assert(sizeof(Outbox::Head) == Outbox::Head::words * sizeof(std::int64_t));

bool has_strides(const ncsub::RequestView& request) {
    for (std::size_t d = 0; d < request.dimensions; ++d)
        if (request.step(d) != 1 && request.count[d] > 1) return true;
    return false;
}

/// Adds the tasks of a rank, whose numbers stay among the words.
void add_tasks(const File& file, std::vector<std::int64_t>& words, std::int64_t source, std::byte* data,
               std::vector<Task>& tasks) {
    for (std::size_t at = 0; at < words.size();) {
        Outbox::Head head;
        std::memcpy(static_cast<void*>(&head), &words[at], sizeof head);
        at += Outbox::Head::words;
        Task task;
        task.source = source;
        task.variable = static_cast<int>(head.variable);
        task.element = static_cast<ncsub::Element>(head.element);
        task.subfile = head.subfile;
        task.strides = head.strides != 0;
        task.dimensions = file.logical.divisions[static_cast<std::size_t>(head.variable)]->dimension_ids.size();
        task.numbers = words.data() + at;
        task.pieces = head.pieces;
        task.data = data;
        for (std::int64_t piece = 0; piece < task.pieces; ++piece)
            task.bytes += elements_of(task.request(piece)) * ncsub::bytes_of(task.element);
        data += task.bytes;
        at += static_cast<std::size_t>(task.pieces) * task.numbers_of_piece();
        tasks.push_back(task);
    }
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

/// What ranks tell each other in an exchange, to know the most of all.
struct Most {
    std::int64_t records = 0;  ///< that the file has afterwards
    std::int64_t rounds = 1;
};

/// One exchange.
class Exchange {
public:
    Exchange(File& file, std::span<Wanted> wanted, bool writing, Most most)
        : file_(file),
          wanted_(wanted),
          writing_(writing),
          most_(most),
          out_(static_cast<std::size_t>(file.ranks)),
          data_(out_.size()),
          from_(out_.size(), nullptr),
          data_bytes_(out_.size(), 0),
          their_words_(out_.size()),
          their_data_(out_.size()) {}

    int run() {
        std::vector<Task> tasks;
        if (!give(tasks)) return error_file;
        {
            const Timed timed(file_.clocks.storage);
            const std::vector<Task*> sorted = by_subfile(file_, tasks);
            if (!writing_) begin_read(file_, sorted);
            for (const Subfile& subfile : file_.subfiles) {
                carry_out_tasks(file_, subfile, file_.group, of_subfile(sorted, subfile.number), writing_);
                if (writing_) begin_flush(subfile);
            }
        }
        const int failure = agree(file_, failure_in(file_, tasks));
        const Timed timed(file_.clocks.exchange, &file_.clocks.exchange_processor);
        return answer(tasks) ? failure : error_file;
    }
    /// Of all ranks.
    [[nodiscard]] Most most() const { return most_; }

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
        const auto divided = static_cast<std::size_t>(division.dimension);
        // Most requests of those that are many lie in one subfile.
        if (const auto only = only_subfile(wanted.request, division.dimension, division.boundaries)) {
            const std::int64_t before = division.boundaries[static_cast<std::size_t>(*only)];
            add_piece(number, *only, wanted.request, {0, wanted.request.count[divided]},
                      wanted.request.start[divided] - before);
            return;
        }
        for (const Piece& piece : split(request_of(wanted.request), division.dimension, division.boundaries))
            add_piece(number, piece.subfile, piece.request, slice_of(piece, division.dimension),
                      piece.request.start[divided]);
    }

    void add_piece(std::size_t number, std::int64_t subfile, const ncsub::RequestView& piece, ncsub::Slice slice,
                   std::int64_t first) {
        const Wanted& wanted = wanted_[number];
        const auto type = file_.logical.header.variables[static_cast<std::size_t>(wanted.variable)].type;
        const auto divided = static_cast<std::size_t>(division_of(wanted).dimension);
        const std::int64_t to = file_.groups().delegate_of(file_.rank, subfile);
        const std::int64_t bytes = elements_of(piece) * ncsub::bytes_of(wanted.element);
        std::int64_t& place = data_bytes_[static_cast<std::size_t>(to)];
        const Outbox::Head head{wanted.variable, static_cast<std::int64_t>(wanted.element), subfile,
                                has_strides(piece) ? 1 : 0};
        const std::int64_t task = out_[static_cast<std::size_t>(to)].add(
            head, wanted.access, wanted.element != element_of(type), piece, divided, first);
        sent_.push_back({number, slice, to, task, bytes, place});
        place += bytes;
    }

    /// What goes to one rank in one piece that lies in one piece in memory, too, is sent from there. Not what stays here: the library may swap
    /// its bytes in place.
    void gather() {
        std::vector<int> pieces(out_.size(), 0);
        for (const Sent& sent : sent_) ++pieces[static_cast<std::size_t>(sent.to)];
        for (const Sent& sent : sent_) {
            const Wanted& wanted = wanted_[sent.wanted];
            const auto to = static_cast<std::size_t>(sent.to);
            const auto bytes = static_cast<std::size_t>(ncsub::bytes_of(wanted.element));
            if (pieces[to] == 1 && sent.to != file_.rank)
                if (const auto place = place_of(wanted.request, division_of(wanted).dimension, sent.slice, bytes)) {
                    from_[to] = wanted.from + *place;
                    continue;
                }
            if (data_[to].size() == 0) data_[to] = Bytes(data_bytes_[to]);
            from_[to] = data_[to].data();
            ncsub::gather(wanted.request, division_of(wanted).dimension, sent.slice, bytes, wanted.from,
                          data_[to].data() + sent.place);
        }
    }

    /// How much each rank is about to get from each, and what is the most of all ranks: the one meeting of all.
    bool tell() {
        constexpr int each = 4;
        std::vector<std::int64_t> mine, theirs(each * out_.size());
        for (std::size_t rank = 0; rank < out_.size(); ++rank)
            mine.insert(mine.end(), {std::ssize(out_[rank].words), data_bytes_[rank], most_.records, most_.rounds});
        if (PMPI_Alltoall(mine.data(), each, MPI_INT64_T, theirs.data(), each, MPI_INT64_T, file_.comm) != MPI_SUCCESS)
            return false;
        for (std::size_t rank = 0; rank < out_.size(); ++rank) {
            const std::int64_t* told = &theirs[each * rank];
            their_words_[rank].resize(static_cast<std::size_t>(told[0]));
            their_data_[rank] = Bytes(told[1]);
            most_.records = std::max(most_.records, told[2]);
            most_.rounds = std::max(most_.rounds, told[3]);
        }
        return true;
    }

    bool deliver() {
        Messages messages(file_);
        constexpr std::int64_t word = sizeof(std::int64_t);
        for_each_other([&](std::size_t rank) {
            const auto number = static_cast<std::int64_t>(rank);
            messages.receive(their_words_[rank].data(), std::ssize(their_words_[rank]) * word, number, words_tag);
            if (writing_) messages.receive(their_data_[rank].data(), their_data_[rank].size(), number, data_tag);
        });
        for_each_other([&](std::size_t rank) {
            const auto number = static_cast<std::int64_t>(rank);
            messages.send(out_[rank].words.data(), std::ssize(out_[rank].words) * word, number, words_tag);
            if (writing_) messages.send(from_[rank], data_bytes_[rank], number, data_tag);
        });
        const auto me = static_cast<std::size_t>(file_.rank);
        std::swap(their_words_[me], out_[me].words);
        if (writing_) std::swap(their_data_[me], data_[me]);
        return messages.wait();
    }

    std::vector<Task> all_tasks() {
        std::vector<Task> tasks;
        for (std::size_t rank = 0; rank < out_.size(); ++rank)
            add_tasks(file_, their_words_[rank], static_cast<std::int64_t>(rank), their_data_[rank].data(), tasks);
        return tasks;
    }

    /// Errors, and what was read, in the order of the tasks.
    bool answer(const std::vector<Task>& tasks) {
        std::vector<std::vector<int>> errors(out_.size()), our_errors(out_.size());
        for (const Task& task : tasks) errors[static_cast<std::size_t>(task.source)].push_back(task.error);
        for (std::size_t rank = 0; rank < out_.size(); ++rank)
            our_errors[rank].resize(static_cast<std::size_t>(out_[rank].tasks()), no_error);
        if (!writing_)
            for (std::size_t rank = 0; rank < data_.size(); ++rank) data_[rank] = Bytes(data_bytes_[rank]);
        Messages messages(file_);
        constexpr std::int64_t word = sizeof(int);
        for_each_other([&](std::size_t rank) {
            const auto number = static_cast<std::int64_t>(rank);
            messages.receive(our_errors[rank].data(), std::ssize(our_errors[rank]) * word, number, answer_tag);
            if (!writing_) messages.receive(data_[rank].data(), data_[rank].size(), number, answer_data_tag);
        });
        for_each_other([&](std::size_t rank) {
            const auto number = static_cast<std::int64_t>(rank);
            messages.send(errors[rank].data(), std::ssize(errors[rank]) * word, number, answer_tag);
            if (!writing_) messages.send(their_data_[rank].data(), their_data_[rank].size(), number, answer_data_tag);
        });
        const auto me = static_cast<std::size_t>(file_.rank);
        our_errors[me] = errors[me];
        if (!writing_) std::swap(data_[me], their_data_[me]);
        if (!messages.wait()) return false;
        take(our_errors);
        return true;
    }

    void take(const std::vector<std::vector<int>>& errors) {
        for (const Sent& sent : sent_) {
            const auto to = static_cast<std::size_t>(sent.to);
            Wanted& wanted = wanted_[sent.wanted];
            if (wanted.error == no_error) wanted.error = errors[to][static_cast<std::size_t>(sent.task)];
            if (writing_) continue;
            ncsub::scatter(wanted.request, division_of(wanted).dimension, sent.slice,
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

    File& file_;
    std::span<Wanted> wanted_;
    const bool writing_;
    Most most_;
    std::vector<Sent> sent_;
    std::vector<Outbox> out_;             ///< for each rank
    std::vector<Bytes> data_;             ///< for each rank; reading: from each rank
    std::vector<const std::byte*> from_;  ///< writing: where that lies which goes to each rank
    std::vector<std::int64_t> data_bytes_;
    std::vector<std::vector<std::int64_t>> their_words_;
    std::vector<Bytes> their_data_;
};

/// A rank gives away at most so much at a time: subfiles' targets begin early, and so much is what an exchange takes of
/// memory.
constexpr std::int64_t round_bytes = 4 << 20;

/// A round has no less than this for a subfile, if there is so much for it.
constexpr std::int64_t least_share = 256 << 10;

/// What is wanted, in parts of at most round_bytes. Each round has something for every subfile that is to get something,
/// as far as its elements lie in one piece in memory: else the targets of some would stand idle while others have all.
class Rounds {
public:
    Rounds(const File& file, std::span<Wanted> wanted) : wanted_(wanted) {
        std::int64_t bytes = 0;
        for (const Wanted& one : wanted) bytes += bytes_in_round(one);
        if (bytes <= round_bytes) return;
        is_one_ = false;
        for (std::size_t i = 0; i < wanted.size(); ++i) add(file, i);
        std::set<std::int64_t> subfiles;
        for (const Part& part : whole_) subfiles.insert(part.subfile);
        const std::int64_t share = std::max(least_share, round_bytes / std::max<std::int64_t>(1, std::ssize(subfiles)));
        std::map<std::int64_t, std::int64_t> before;  // bytes for each subfile
        std::vector<Part> parts;
        for (const Part& part : whole_) cut(part, part.subfile == scattered ? round_bytes : share, before, parts);
        // Requests of one rank that meet in a subfile keep their order: turns go by subfile, and parts for several have none.
        if (!subfiles.contains(scattered))
            std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.turn < b.turn; });
        group(parts);
    }
    [[nodiscard]] std::int64_t count() const { return is_one_ ? 1 : std::ssize(begins_) - 1; }
    /// Nothing, after the last.
    [[nodiscard]] std::span<Wanted> round(std::int64_t number) {
        if (number >= count()) return {};
        if (is_one_) return wanted_;
        const auto at = static_cast<std::size_t>(number);
        return std::span(parts_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
    }
    /// The first error of its parts.
    void give_errors() {
        for (std::size_t i = 0; i < parts_.size(); ++i)
            if (Wanted& one = wanted_[whose_[i]]; one.error == no_error) one.error = parts_[i].error;
    }

private:
    static constexpr std::int64_t scattered = -1;  ///< for several subfiles, and for each in several pieces of memory

    struct Part {
        Wanted wanted;
        std::size_t whose = 0;
        std::int64_t subfile = scattered;
        std::int64_t turn = 0;  ///< of its subfile
    };

    [[nodiscard]] static std::int64_t bytes_of(const Wanted& wanted) {
        return elements_of(wanted.request) * ncsub::bytes_of(wanted.element);
    }
    /// What describes a small request takes more memory than its elements.
    [[nodiscard]] static std::int64_t bytes_in_round(const Wanted& wanted) {
        return bytes_of(wanted) + static_cast<std::int64_t>(wanted.request.dimensions * 2 * sizeof(std::int64_t));
    }

    /// The view of a request that is kept here.
    ncsub::RequestView kept(Request request) { return requests_.emplace_back(std::move(request)); }

    void add(const File& file, std::size_t number) {
        const Wanted& wanted = wanted_[number];
        const ncsub::Division& division = *file.logical.divisions[static_cast<std::size_t>(wanted.variable)];
        if (const auto only = only_subfile(wanted.request, division.dimension, division.boundaries)) {
            whole_.push_back({wanted, number, *only});
            return;
        }
        const auto dimension = static_cast<std::size_t>(division.dimension);
        const auto element = static_cast<std::size_t>(ncsub::bytes_of(wanted.element));
        std::vector<Part> parts;
        for (Piece& piece : split(request_of(wanted.request), division.dimension, division.boundaries)) {
            const auto place =
                place_of(wanted.request, division.dimension, slice_of(piece, division.dimension), element);
            if (!place) {
                parts = {{wanted, number}};
                break;
            }
            piece.request.start[dimension] += division.boundaries[static_cast<std::size_t>(piece.subfile)];
            Part part{wanted, number, piece.subfile};
            part.wanted.request = kept(std::move(piece.request));
            part.wanted.from += *place;
            parts.push_back(part);
        }
        whole_.insert(whole_.end(), parts.begin(), parts.end());
    }

    void cut(const Part& whole, std::int64_t most, std::map<std::int64_t, std::int64_t>& before,
             std::vector<Part>& parts) {
        std::int64_t& of_subfile = before[whole.subfile];
        Part part = whole;
        const auto add_part = [&] {
            part.turn = of_subfile / most;
            parts.push_back(part);
            const std::int64_t bytes = bytes_of(part.wanted);
            of_subfile += bytes;
            part.wanted.from += bytes;
        };
        if (bytes_of(whole.wanted) <= most) return add_part();
        for (Request& request :
             ncsub::cut(request_of(whole.wanted.request), ncsub::bytes_of(whole.wanted.element), most)) {
            part.wanted.request = kept(std::move(request));
            add_part();
        }
    }

    void group(const std::vector<Part>& parts) {
        begins_ = {0};
        std::int64_t bytes = 0;
        for (const Part& part : parts) {
            const std::int64_t more = bytes_in_round(part.wanted);
            if (bytes > 0 && bytes + more > round_bytes) {
                begins_.push_back(parts_.size());
                bytes = 0;
            }
            bytes += more;
            parts_.push_back(part.wanted);
            whose_.push_back(part.whose);
        }
        begins_.push_back(parts_.size());
    }

    std::span<Wanted> wanted_;
    bool is_one_ = true;
    std::deque<Request> requests_;  // which stay where they are
    std::vector<Part> whole_;
    std::vector<Wanted> parts_;
    std::vector<std::size_t> whose_;
    std::vector<std::size_t> begins_;
};

int write_in_rounds(File& file, std::span<Wanted> wanted, Most& most) {
    Rounds rounds(file, wanted);
    most.rounds = rounds.count();
    int error = no_error;
    for (std::int64_t number = 0; number < most.rounds && error == no_error; ++number) {
        Exchange exchange(file, rounds.round(number), true, most);
        error = exchange.run();
        most = exchange.most();
    }
    rounds.give_errors();
    return error;
}

}  // namespace

int exchange(File& file, std::span<Wanted> wanted, bool writing, std::int64_t records) {
    const Timed timed(file.clocks.calls);
    Most most{records, 1};
    int error = no_error;
    if (writing) {
        error = write_in_rounds(file, wanted, most);
    } else {
        Exchange exchange(file, wanted, false, most);
        error = exchange.run();
        most = exchange.most();
    }
    file.records = std::max(file.records, most.records);
    return error == no_error && writing ? keep_records(file) : error;
}

}  // namespace ioweir::pnetcdf
