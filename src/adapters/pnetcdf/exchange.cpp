#include "adapters/pnetcdf/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "adapters/pnetcdf/early.hpp"
#include "adapters/pnetcdf/element_types.hpp"
#include "adapters/pnetcdf/tasks.hpp"
#include "exchange/delivery.hpp"
#include "planner/array_plan.hpp"
#include "storage/pacing.hpp"

namespace ioweir::pnetcdf {
namespace {

/// Where a piece of ours has gone.
struct Sent {
    std::size_t wanted = 0;
    ncsub::Slice slice;
    std::size_t to = 0;
    std::int64_t task = 0;   ///< among those that go there
    std::int64_t place = 0;  ///< of its data among all that go there
};

/// Uninitialised: every byte is written before it is read.
struct Bytes {
    Bytes() = default;
    explicit Bytes(std::int64_t size)
        : memory(size > 0 ? new std::byte[static_cast<std::size_t>(size)] : nullptr),
          span(memory.get(), static_cast<std::size_t>(size)) {}
    [[nodiscard]] std::byte* data() const { return memory.get(); }

    std::unique_ptr<std::byte[]> memory;
    std::span<std::byte> span;
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

/// What ranks tell each other in an exchange, to know the most of all.
struct Most {
    std::int64_t records = 0;  ///< that the file has afterwards
    std::int64_t rounds = 1;
    NamedVariables named = {};
};

/// One exchange.
class Exchange {
public:
    /// A round of the plan, whose parts are `wanted`. `most`: of all ranks, afterwards. `ranks`: the file's, or 1 for one that carries out
    /// everything by itself.
    Exchange(File& file, const planner::ArrayPlan& plan, std::int64_t round, std::span<Wanted> wanted, bool writing,
             Most& most, int ranks)
        : file_(file),
          plan_(plan),
          round_(round),
          wanted_(wanted),
          writing_(writing),
          most_(most),
          me_(ranks > 1 ? static_cast<std::size_t>(file.rank) : 0),
          out_(static_cast<std::size_t>(ranks)),
          data_(out_.size()),
          from_(out_.size(), nullptr),
          data_bytes_(out_.size(), 0),
          their_words_(out_.size()),
          their_data_(out_.size()) {}

    int run() {
        std::vector<Task> tasks;
        if (!give(tasks)) return error_file;
        if (!most_.named.divided) return no_error;
        {
            const Timed timed(file_.clocks.storage);
            const std::vector<Task*> sorted = by_subfile(file_, tasks);
            if (!writing_) begin_read(file_, sorted);
            for (const Subfile& subfile : file_.subfiles) {
                carry_out_tasks(file_, subfile, file_.group, of_subfile(sorted, subfile.number), writing_);
                if (writing_ && subfile.descriptor >= 0) storage::begin_flush_of_file(subfile.descriptor);
            }
        }
        // Answers go to and fro while ranks agree: where they share processors, each wait for the others costs a time slice.
        const int mine = failure_in(file_, tasks);
        int least = no_error;
        MPI_Request agreed = MPI_REQUEST_NULL;
        if (PMPI_Iallreduce(&mine, &least, 1, MPI_INT, MPI_MIN, file_.comm, &agreed) != MPI_SUCCESS) return error_file;
        const Timed timed(file_.clocks.exchange, &file_.clocks.exchange_processor);
        const bool answered = answer(tasks);
        return PMPI_Wait(&agreed, MPI_STATUS_IGNORE) == MPI_SUCCESS && answered ? least : error_file;
    }
    void run_alone() {
        cut();
        if (!writing_) data_[me_] = Bytes(data_bytes_[me_]);
        std::vector<Task> tasks;
        add_tasks(file_, out_[me_].words, 0, data_[me_].data(), tasks);
        carry_out_tasks_alone(file_, by_subfile(file_, tasks), writing_);
        (void)failure_in(file_, tasks);
        take(errors_of(tasks));
    }

private:
    /// Pieces go to who carries them out. False: a message was lost.
    bool give(std::vector<Task>& tasks) {
        const Timed timed(file_.clocks.exchange, &file_.clocks.exchange_processor);
        cut();
        if (!tell()) return false;
        if (!most_.named.divided) return true;
        if (!deliver()) return false;
        tasks = all_tasks();
        return true;
    }

    void cut() {
        plan_.visit_messages(round_, [&](const planner::ArrayMessage& message) { add_piece(message); });
        if (writing_) gather();
    }

    void add_piece(const planner::ArrayMessage& message) {
        const Wanted& wanted = wanted_[message.part];
        const ncsub::RequestView& piece = message.piece;
        const auto type = file_.logical.header.variables[static_cast<std::size_t>(wanted.variable)].type;
        const auto divided = static_cast<std::size_t>(division_of(wanted).dimension);
        const auto to = static_cast<std::size_t>(message.owner);
        std::int64_t& place = data_bytes_[to];
        const Outbox::Head head{wanted.variable, static_cast<std::int64_t>(wanted.element), message.subfile,
                                has_strides(piece) ? 1 : 0};
        const std::int64_t task =
            out_[to].add(head, wanted.access, wanted.element != element_of(type), piece, divided, message.first);
        sent_.push_back({message.part, message.slice, to, task, place});
        place += elements_of(piece) * ncsub::bytes_of(wanted.element);
    }

    /// What goes to one rank in one piece that lies in one piece in memory, too, is sent from there. Not what stays here: the library may swap
    /// its bytes in place.
    void gather() {
        std::vector<int> pieces(out_.size(), 0);
        for (const Sent& sent : sent_) ++pieces[sent.to];
        for (const Sent& sent : sent_) {
            const Wanted& wanted = wanted_[sent.wanted];
            const std::size_t to = sent.to;
            const auto bytes = static_cast<std::size_t>(ncsub::bytes_of(wanted.element));
            if (pieces[to] == 1 && to != me_)
                if (const auto place = place_of(wanted.request, division_of(wanted).dimension, sent.slice, bytes)) {
                    from_[to] = wanted.from + *place;
                    continue;
                }
            if (data_[to].span.empty()) data_[to] = Bytes(data_bytes_[to]);
            from_[to] = data_[to].data();
            ncsub::gather(wanted.request, division_of(wanted).dimension, sent.slice, bytes, wanted.from,
                          data_[to].data() + sent.place);
        }
    }

    /// How much each rank is about to get from each, and what is the most of all ranks: the one meeting of all. Few words go with it.
    bool tell() {
        constexpr std::size_t head = 5;
        constexpr std::int64_t divided = 1, in_master = 2;
        const std::int64_t named = (most_.named.divided ? divided : 0) | (most_.named.in_master ? in_master : 0);
        const std::size_t each = head + words_with_meeting();
        std::vector<std::int64_t> mine(each * out_.size()), theirs(each * out_.size());
        for (std::size_t rank = 0; rank < out_.size(); ++rank) {
            const std::vector<std::int64_t>& words = out_[rank].words;
            std::int64_t* told = &mine[each * rank];
            for (const std::int64_t word : {std::ssize(words), data_bytes_[rank], most_.records, most_.rounds, named})
                *told++ = word;
            if (go_with_meeting(words)) std::copy(words.begin(), words.end(), told);
        }
        if (!exchange::tell_each(file_.comm, mine, theirs)) return false;
        for (std::size_t rank = 0; rank < out_.size(); ++rank) {
            const std::int64_t* told = &theirs[each * rank];
            std::vector<std::int64_t>& words = their_words_[rank];
            words.resize(static_cast<std::size_t>(told[0]));
            if (go_with_meeting(words)) std::copy_n(told + head, words.size(), words.begin());
            their_data_[rank] = Bytes(told[1]);
            most_.records = std::max(most_.records, told[2]);
            most_.rounds = std::max(most_.rounds, told[3]);
            most_.named.divided = most_.named.divided || (told[4] & divided) != 0;
            most_.named.in_master = most_.named.in_master || (told[4] & in_master) != 0;
        }
        return true;
    }

    /// Words for each rank that go with the meeting. Of many ranks none, for all of them together would be megabytes.
    [[nodiscard]] std::size_t words_with_meeting() const {
        constexpr std::size_t most_ranks = 64, words_of_few_pieces = 24;
        return out_.size() <= most_ranks ? words_of_few_pieces : 0;
    }
    [[nodiscard]] bool go_with_meeting(const std::vector<std::int64_t>& words) const {
        return words.size() <= words_with_meeting();
    }

    /// What goes to each rank describes tasks and, writing, has their data.
    bool deliver() {
        std::vector<exchange::Shipment> shipments(writing_ ? 2 : 1, exchange::Shipment(out_.size()));
        for (std::size_t rank = 0; rank < out_.size(); ++rank) {
            if (!go_with_meeting(out_[rank].words)) shipments[0].to[rank] = std::as_bytes(std::span(out_[rank].words));
            if (!go_with_meeting(their_words_[rank]))
                shipments[0].from[rank] = std::as_writable_bytes(std::span(their_words_[rank]));
            if (!writing_) continue;
            shipments[1].to[rank] = {from_[rank], static_cast<std::size_t>(data_bytes_[rank])};
            shipments[1].from[rank] = their_data_[rank].span;
        }
        const bool delivered = exchange::deliver(file_.comm, shipments);
        std::swap(their_words_[me_], out_[me_].words);
        if (writing_) std::swap(their_data_[me_], data_[me_]);
        return delivered;
    }

    std::vector<Task> all_tasks() {
        std::vector<Task> tasks;
        for (std::size_t rank = 0; rank < out_.size(); ++rank)
            add_tasks(file_, their_words_[rank], static_cast<std::int64_t>(rank), their_data_[rank].data(), tasks);
        return tasks;
    }

    /// Errors, and what was read, in the order of the tasks.
    bool answer(const std::vector<Task>& tasks) {
        std::vector<std::vector<int>> errors = errors_of(tasks), our_errors(out_.size());
        for (std::size_t rank = 0; rank < out_.size(); ++rank)
            our_errors[rank].resize(static_cast<std::size_t>(out_[rank].tasks()), no_error);
        if (!writing_)
            for (std::size_t rank = 0; rank < data_.size(); ++rank) data_[rank] = Bytes(data_bytes_[rank]);
        std::vector<exchange::Shipment> shipments(writing_ ? 1 : 2, exchange::Shipment(out_.size()));
        for (std::size_t rank = 0; rank < out_.size(); ++rank) {
            shipments[0].to[rank] = std::as_bytes(std::span(errors[rank]));
            shipments[0].from[rank] = std::as_writable_bytes(std::span(our_errors[rank]));
            if (writing_) continue;
            shipments[1].to[rank] = their_data_[rank].span;
            shipments[1].from[rank] = data_[rank].span;
        }
        if (!exchange::deliver(file_.comm, shipments)) return false;
        std::swap(our_errors[me_], errors[me_]);
        if (!writing_) std::swap(data_[me_], their_data_[me_]);
        take(our_errors);
        return true;
    }

    /// By the ranks whose they are.
    [[nodiscard]] std::vector<std::vector<int>> errors_of(const std::vector<Task>& tasks) const {
        std::vector<std::vector<int>> errors(out_.size());
        for (const Task& task : tasks) errors[static_cast<std::size_t>(task.source)].push_back(task.error);
        return errors;
    }

    void take(const std::vector<std::vector<int>>& errors) {
        for (const Sent& sent : sent_) {
            Wanted& wanted = wanted_[sent.wanted];
            if (wanted.error == no_error) wanted.error = errors[sent.to][static_cast<std::size_t>(sent.task)];
            if (writing_) continue;
            ncsub::scatter(wanted.request, division_of(wanted).dimension, sent.slice,
                           static_cast<std::size_t>(ncsub::bytes_of(wanted.element)),
                           data_[sent.to].data() + sent.place, wanted.to);
        }
    }

    [[nodiscard]] const ncsub::Division& division_of(const Wanted& wanted) const {
        return *file_.logical.divisions[static_cast<std::size_t>(wanted.variable)];
    }

    File& file_;
    const planner::ArrayPlan& plan_;
    const std::int64_t round_;
    std::span<Wanted> wanted_;
    const bool writing_;
    Most& most_;
    const std::size_t me_;  ///< among the ranks
    std::vector<Sent> sent_;
    std::vector<Outbox> out_;             ///< for each rank
    std::vector<Bytes> data_;             ///< for each rank; reading: from each rank
    std::vector<const std::byte*> from_;  ///< writing: where that lies which goes to each rank
    std::vector<std::int64_t> data_bytes_;
    std::vector<std::vector<std::int64_t>> their_words_;
    std::vector<Bytes> their_data_;
};

/// What this rank and its file's others do together, or it alone, everything by itself and at once.
enum class Whose { all_ranks, alone };
planner::ArrayPlan plan_of(const File& file, std::span<const Wanted> wanted, bool writing, Whose whose) {
    std::vector<planner::DividedRequest> requests;
    requests.reserve(wanted.size());
    for (const Wanted& one : wanted) {
        const ncsub::Division& division = *file.logical.divisions[static_cast<std::size_t>(one.variable)];
        requests.push_back({one.request, ncsub::bytes_of(one.element), division.dimension, division.boundaries});
    }
    const bool alone = whose == Whose::alone;
    return {requests, alone ? 0 : file.rank, alone ? ncsub::Groups(1, file.logical.subfiles) : file.groups(),
            writing && !alone};
}

int write_in_rounds(File& file, const planner::ArrayPlan& plan, std::span<Wanted> wanted, Most& most) {
    most.rounds = plan.rounds();
    int error = no_error;
    for (std::int64_t number = 0; number < most.rounds && error == no_error; ++number) {
        std::vector<Wanted> parts;
        const std::span<const planner::RoundPart> round = plan.parts(number);
        for (const planner::RoundPart& part : round) {
            Wanted& one = parts.emplace_back(wanted[part.whose]);
            one.request = part.request;
            one.from += part.place;
        }
        error = Exchange(file, plan, number, parts, true, most, file.ranks).run();
        for (std::size_t i = 0; i < parts.size(); ++i)
            if (Wanted& one = wanted[round[i].whose]; one.error == no_error) one.error = parts[i].error;
    }
    return error;
}

}  // namespace

int exchange(File& file, std::span<Wanted> wanted, bool writing, std::int64_t records, NamedVariables& named) {
    const Timed timed(file.clocks.calls);
    Most most{records, 1, named};
    const planner::ArrayPlan plan = plan_of(file, wanted, writing, Whose::all_ranks);
    const int error = writing ? write_in_rounds(file, plan, wanted, most)
                              : Exchange(file, plan, 0, wanted, false, most, file.ranks).run();
    named = most.named;
    file.records = std::max(file.records, most.records);
    return error == no_error && writing && named.divided ? keep_records(file) : error;
}

void carry_out_alone(File& file, std::span<Wanted> wanted, bool writing) {
    Most most;
    Exchange(file, plan_of(file, wanted, writing, Whose::alone), 0, wanted, writing, most, 1).run_alone();
}

}  // namespace ioweir::pnetcdf
