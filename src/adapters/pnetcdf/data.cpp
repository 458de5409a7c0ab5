// Data of divided variables: blocking calls, non-blocking ones and their waiting.
#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "adapters/pnetcdf/access.hpp"
#include "adapters/pnetcdf/arguments.hpp"
#include "adapters/pnetcdf/exchange.hpp"
#include "adapters/pnetcdf/file.hpp"
#include "adapters/pnetcdf/in_master.hpp"
#include "adapters/pnetcdf/pending.hpp"

namespace ioweir::pnetcdf {

namespace {

bool is_ours(int id) { return id >= PendingList::first_id; }

/// Keeps the first error.
void keep(int& error, int code) {
    if (error == no_error) error = code;
}

/// Is there room in the buffer that the program has attached for bput? The library's own accesses are in it, too.
int check_room(const File& file, std::int64_t bytes) {
    Offset size = 0, used = 0;
    int error = file.library->inq_buffer_size(file.master, &size);
    if (error == no_error) error = file.library->inq_buffer_usage(file.master, &used);
    if (error != no_error) return error;
    return size - used - bytes_buffered(file) < bytes ? error_buffer : no_error;
}

PendingList& pending_of(File& file) {
    if (!file.pending) file.pending.reset(new PendingList);
    return *file.pending;
}

int begin(File& file, const ncsub::Header& header, const Call& call, const ncsub::CallForm& form) {
    auto* request = argument<int*>(call, call.count - 1);
    if (request != nullptr) *request = no_request;
    PendingList& list = pending_of(file);
    auto pending = std::make_unique<Pending>(Pending{list.next_id(), Access(file, header, call, form)});
    if (pending->access.error() != no_error || pending->access.elements() == 0) return pending->access.error();
    if (form.verb == ncsub::Verb::bput) {
        pending->buffered = pending->access.bytes_in_file();
        if (const int error = check_room(file, pending->buffered); error != no_error) return error;
    }
    if (request != nullptr) *request = pending->id;
    const int told = pending->told = pending->access.range_error(file);
    list.add(std::move(pending));
    return told;
}

/// As the library counts what an access has moved.
void count_moved(File& file, std::span<const Wanted> wanted, bool writing) {
    for (const Wanted& one : wanted) {
        if (one.error != no_error && one.error != error_range) continue;
        const auto type = file.logical.header.variables[static_cast<std::size_t>(one.variable)].type;
        (writing ? file.moved.put : file.moved.get) += elements_of(one.request) * ncsub::bytes_of(type);
    }
}

/// What is wanted of divided variables, by all ranks together or, in independent mode, by this one. `records`: see Access::records().
int move(File& file, std::span<Wanted> wanted, bool writing, std::int64_t records) {
    int error = no_error;
    if (file.state == File::State::independent) {
        carry_out_alone(file, wanted, writing);
        file.records = std::max(file.records, records);
    } else {
        NamedVariables named;
        error = exchange(file, wanted, writing, records, named);
    }
    if (error == no_error) count_moved(file, wanted, writing);
    return error;
}

/// What a blocking call of this rank wants: of subfiles, and of the master.
struct AtOnce {
    std::optional<Access> access;
    int error = no_error;
    std::vector<Wanted> wanted = {};
    std::size_t of_subfiles = 0;  ///< how many, which come first

    AtOnce(const File& file, const Call& call, const ncsub::CallForm& form) {
        const auto variable = argument<int>(call, 1);
        if (file.knows(variable)) access.emplace(file, file.logical.header, call, form);
        error = access ? access->error() : variable == global ? error_global : error_no_variable;
    }
    [[nodiscard]] std::span<Wanted> for_subfiles(const File& file) {
        if (access) access->add_to(wanted);
        const auto end = std::stable_partition(wanted.begin(), wanted.end(),
                                               [&](const Wanted& one) { return file.is_divided(one.variable); });
        of_subfiles = static_cast<std::size_t>(end - wanted.begin());
        return std::span(wanted).first(of_subfiles);
    }
    [[nodiscard]] std::span<Wanted> for_master() { return std::span(wanted).subspan(of_subfiles); }
    [[nodiscard]] std::int64_t records() const { return access ? access->records() : 0; }
    /// After all was carried out, which ended with `failure`: the call's result.
    [[nodiscard]] int finish(int failure) {
        keep(error, failure);
        for (const Wanted& one : wanted) keep(error, one.error);
        if (access) keep(error, access->finish());
        return error;
    }
};

/// Where the accesses of all ranks lead.
enum class LeadsTo : std::uint8_t { subfiles, master_too };

int at_once(File& file, const Call& call, const ncsub::CallForm& form, LeadsTo reach) {
    const bool independent = file.state == File::State::independent;
    if (form.collective == independent) return independent ? error_independent : error_collective;
    // A rank whose arguments are wrong takes part all the same, with nothing; in safe mode all ranks return its error, as the library does it.
    AtOnce own(file, call, form);
    if (file.safe && !independent)
        if (const int worst = agree(file, own.error); worst != no_error) return worst;
    int failure = move(file, own.for_subfiles(file), form.writes(), own.records());
    if (reach == LeadsTo::master_too) keep(failure, carry_out_in_master(file, own.for_master(), form.writes()));
    return own.finish(failure);
}

/// The same in data mode, where ranks first tell each other what they name: whoever names a variable of the master takes part with nothing
/// until it knows whether another one names a divided one. Nothing: none does.
std::optional<int> at_once_if_divided(File& file, const Call& call, const ncsub::CallForm& form, NamedVariables named) {
    std::optional<AtOnce> own;
    if (named.divided) own.emplace(file, call, form);
    const auto wanted = own ? own->for_subfiles(file) : std::span<Wanted>();
    int failure = exchange(file, wanted, form.writes(), own ? own->records() : 0, named);
    if (!named.divided) return failure == no_error ? std::nullopt : std::optional(failure);
    if (failure == no_error) count_moved(file, wanted, form.writes());
    if (!own) {
        own.emplace(file, call, form);
        (void)own->for_subfiles(file);  // none: the variable is not divided
    }
    if (named.in_master) keep(failure, carry_out_in_master(file, own->for_master(), form.writes()));
    return own->finish(failure);
}

/// Is it of a divided variable? One that was begun in define mode may be of another.
bool is_divided(const File& file, const Pending& pending) { return file.is_divided(pending.access.variable()); }

/// Carries out those of one direction that are divided; `errors`: one for each of `chosen`. Collective, but in
/// independent mode.
int carry_out_divided(File& file, const Chosen& chosen, std::vector<int>& errors, bool writing) {
    std::vector<Wanted> wanted;
    std::int64_t records = 0;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (chosen[i]->access.writes() != writing || !is_divided(file, *chosen[i])) continue;
        chosen[i]->access.add_to(wanted, static_cast<int>(i));
        records = std::max(records, chosen[i]->access.records());
    }
    const int failure = move(file, wanted, writing, records);
    for (const Wanted& one : wanted) keep(errors[static_cast<std::size_t>(one.access)], one.error);
    return failure;
}

/// The others of the same, begun in the master: `ids` are the library's, each with its place in `chosen`.
struct InMaster {
    std::vector<int> ids;
    std::vector<std::size_t> owners;
};

InMaster begin_whole(const File& file, const Chosen& chosen, std::vector<int>& errors) {
    InMaster begun;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (is_divided(file, *chosen[i])) continue;
        std::vector<Wanted> wanted;
        chosen[i]->access.add_to(wanted);
        for (const int id : begin_in_master(file, wanted, chosen[i]->access.writes())) {
            begun.ids.push_back(id);
            begun.owners.push_back(i);
        }
        for (const Wanted& one : wanted) keep(errors[i], one.error);
    }
    return begun;
}

/// Those that a wait or cancel names by NC_REQ_ALL and its like.
bool is_meant(int number, const Pending& pending) {
    return number == all_requests || number == (pending.access.writes() ? all_puts : all_gets);
}

Chosen taken_by_kind(File& file, int number) {
    return pending_of(file).take_all([&](const Pending& pending) { return is_meant(number, pending); });
}

/// The requests of a wait or cancel, the library's and ours apart.
struct Named {
    std::vector<int> theirs, their_places, their_statuses;
    Chosen ours;
    std::vector<int> our_places;
    std::size_t count = 0;
    bool unknown = false;  ///< one looks like ours and is not: it is among theirs, where the library says so
    bool all = false;      ///< whatever is begun is meant
    int in_master = 0;     ///< requests that are begun there, where `all`
};

Named sorted(File& file, int count, const int* ids) {
    Named named;
    named.count = static_cast<std::size_t>(std::max(count, 0));
    PendingList& list = pending_of(file);
    for (int i = 0; i < count; ++i) {
        if (auto pending = is_ours(ids[i]) ? list.take(ids[i]) : nullptr) {
            named.ours.push_back(std::move(pending));
            named.our_places.push_back(i);
            continue;
        }
        named.theirs.push_back(ids[i]);
        named.their_places.push_back(i);
        named.unknown = named.unknown || is_ours(ids[i]);
    }
    named.their_statuses.resize(named.theirs.size(), no_error);
    return named;
}

/// The library takes a list that is as long as its own for that, and does not look at its numbers. Programs in Fortran depend on it: their
/// interface keeps a request's number for itself where it says NC_ERANGE, and they wait for another.
void take_all_if_so_many(File& file, int count, bool statuses, Named& named) {
    if (file.library->inq_nreqs(file.master, &named.in_master) != no_error) return;
    PendingList& list = pending_of(file);
    const auto ours = list.count() + std::ssize(named.ours);
    const auto writes = [](const auto& pending) { return pending->access.writes(); };
    const auto puts = list.puts() + std::ranges::count_if(named.ours, writes);
    named.all = count == named.in_master + ours && (puts == 0 || puts == ours || !statuses);
    if (!named.all) return;
    named.unknown = false;
    std::ranges::move(list.take_all([](const Pending&) { return true; }), std::back_inserter(named.ours));
}

/// Writes what the program is told: requests are gone, but for one that there is not, and statuses if it wants them.
int tell(const Named& named, const std::vector<int>& our_errors, int error, int* ids, int* statuses) {
    std::vector<int> all(named.count, no_error);
    for (std::size_t i = 0; i < named.theirs.size(); ++i)
        all[static_cast<std::size_t>(named.their_places[i])] = named.their_statuses[i];
    for (std::size_t i = 0; i < named.our_places.size(); ++i)
        all[static_cast<std::size_t>(named.our_places[i])] = our_errors[i];
    for (std::size_t i = 0; i < all.size(); ++i) {
        keep(error, all[i]);
        if (all[i] != error_request) ids[i] = no_request;
        if (statuses != nullptr) statuses[i] = all[i];
    }
    return error;
}

bool names_unknown(const Named& named) {
    return std::find(named.their_statuses.begin(), named.their_statuses.end(), error_request) !=
           named.their_statuses.end();
}

/// Waits for the master's requests by `how`. `named.ours` that are in the master get their `errors`.
int wait_in_master(File& file, Named& named, int count, std::vector<int>& errors, int (*how)(int, int, int*, int*)) {
    InMaster begun = begin_whole(file, named.ours, errors);
    if (count < 0) return how(file.master, count, nullptr, nullptr);
    if (named.all && std::ssize(named.theirs) != named.in_master)
        return how(file.master, all_requests, nullptr, nullptr);
    std::vector<int> ids(named.theirs);
    ids.insert(ids.end(), begun.ids.begin(), begun.ids.end());
    // The library does not look at a list that is as long as its own, and takes it for that.
    int pending = 0;
    if (named.unknown) (void)file.library->inq_nreqs(file.master, &pending);
    if (named.unknown) ids.resize(std::max(ids.size(), static_cast<std::size_t>(pending) + 1), no_request);
    std::vector<int> statuses(ids.size(), no_error);
    const int error = how(file.master, static_cast<int>(ids.size()), ids.data(), statuses.data());
    std::copy_n(statuses.begin(), named.theirs.size(), named.their_statuses.begin());
    if (names_unknown(named) && !begun.ids.empty())
        (void)file.library->cancel(file.master, static_cast<int>(begun.ids.size()), begun.ids.data(), nullptr);
    for (std::size_t i = 0; i < begun.owners.size(); ++i)
        keep(errors[begun.owners[i]], statuses[named.theirs.size() + i]);
    return error;
}

/// Ends a wait for which some rank has named a request that there is not: nothing is done on any rank, and only this one's program is told, as the
/// library has it. `own`: this rank has named it.
int give_up(File& file, Named& named, bool own, int* ids, int* statuses) {
    // What is not divided was begun in the master, and has been lost there with the library's own where no request was unknown.
    std::erase_if(named.ours, [&](const auto& pending) { return !own && !is_divided(file, *pending); });
    pending_of(file).give_back(std::move(named.ours));
    if (statuses != nullptr) std::fill_n(statuses, named.count, no_error);
    if (!own) {
        if (named.count > 0) std::fill_n(ids, named.count, no_request);
        return no_error;
    }
    if (statuses != nullptr)
        for (std::size_t i = 0; i < named.theirs.size(); ++i) statuses[named.their_places[i]] = named.their_statuses[i];
    return error_request;
}

/// The master's requests first, by `how`, then those of divided variables.
int wait_for(File& file, const Call& call, int (*how)(int, int, int*, int*)) {
    const auto count = argument<int>(call, 1);
    auto* ids = argument<int*>(call, 2);
    auto* statuses = argument<int*>(call, 3);
    Named named;
    if (count < 0)
        named.ours = taken_by_kind(file, count);
    else
        named = sorted(file, count, ids);
    if (count > 0) take_all_if_so_many(file, count, statuses != nullptr, named);
    std::vector<int> errors(named.ours.size(), no_error);
    int error = wait_in_master(file, named, count, errors, how);
    // Which directions there are, on any rank, and whether one has named what there is not.
    std::array<int, 3> any{0, 0, names_unknown(named) ? 1 : 0};
    for (const auto& pending : named.ours)
        if (is_divided(file, *pending)) any[pending->access.writes() ? 0 : 1] = 1;
    if (file.state != File::State::independent &&
        PMPI_Allreduce(MPI_IN_PLACE, any.data(), 3, MPI_INT, MPI_MAX, file.comm) != MPI_SUCCESS)
        return error_file;
    if (any[2] != 0) return give_up(file, named, names_unknown(named), ids, statuses);
    int failure = no_error;
    if (any[0] != 0) keep(failure, carry_out_divided(file, named.ours, errors, true));
    if (any[1] != 0) keep(failure, carry_out_divided(file, named.ours, errors, false));
    for (std::size_t i = 0; i < errors.size(); ++i) {
        if (errors[i] == named.ours[i]->told) errors[i] = no_error;
        keep(errors[i], named.ours[i]->access.finish());
        if (is_divided(file, *named.ours[i])) keep(errors[i], failure);
        keep(error, errors[i]);
    }
    return count < 0 ? error : tell(named, errors, error, ids, statuses);
}

}  // namespace

int access_variable(File& file, const Call& call) {
    const auto form = *ncsub::parse_call(call.symbol);
    if (!form.blocking()) return begin(file, file.logical.header, call, form);
    if (file.state == File::State::define) return error_in_define;
    // Where a file type leads, its variable does not say.
    return at_once(file, call, form, form.access == ncsub::Access::vard ? LeadsTo::master_too : LeadsTo::subfiles);
}

std::optional<int> access_together(File& file, const Call& call) {
    const auto form = *ncsub::parse_call(call.symbol);
    const auto variable = argument<int>(call, 1);
    const bool divided = file.is_divided(variable);
    NamedVariables named{divided, file.knows(variable) && !divided};
    const bool by_type = form.access == ncsub::Access::vard;
    // Programs write several variables of a kind one after the other. The exchange's own meeting says what is named, for which each rank sends each
    // other one a message; a reduction needs fewer, and one more meeting where there is something to exchange.
    if (!file.safe && !by_type && file.named_divided) {
        const auto done = at_once_if_divided(file, call, form, named);
        file.named_divided = done.has_value();
        return done;
    }
    std::array<int, 2> any{named.divided ? 1 : 0, named.in_master ? 1 : 0};
    if (PMPI_Allreduce(MPI_IN_PLACE, any.data(), 2, MPI_INT, MPI_MAX, file.comm) != MPI_SUCCESS) return error_file;
    file.named_divided = any[0] != 0;
    if (any[0] == 0 && !(by_type && any[1] != 0)) return std::nullopt;
    return at_once(file, call, form, by_type || any[1] != 0 ? LeadsTo::master_too : LeadsTo::subfiles);
}

int begin_undefined(File& file, const Call& call) {
    if (!file.so_far) file.so_far = file.logical.header;
    if (const int error = describe(file, *file.so_far); error != no_error) return error;
    const auto variable = argument<int>(call, 1);
    if (variable < 0 || variable >= std::ssize(file.so_far->variables))
        return static_cast<int>(call.invoke(call.real, call.arguments, call.count));  // an error
    return begin(file, *file.so_far, call, *ncsub::parse_call(call.symbol));
}

int wait_all(File& file, const Call& call) {
    const auto count = argument<int>(call, 1);
    auto* ids = argument<int*>(call, 2);
    if (file.state != File::State::data || (count > 0 && ids == nullptr))
        return file.library->wait_all(file.master, count, ids, argument<int*>(call, 3));  // an error
    return wait_for(file, call, file.library->wait_all);
}

int wait_alone(File& file, const Call& call) {
    const auto count = argument<int>(call, 1);
    auto* ids = argument<int*>(call, 2);
    if (file.state != File::State::independent || (count > 0 && ids == nullptr))
        return file.library->wait(file.master, count, ids, argument<int*>(call, 3));  // an error
    return wait_for(file, call, file.library->wait);
}

int cancel(File& file, const Call& call) {
    const auto count = argument<int>(call, 1);
    auto* ids = argument<int*>(call, 2);
    auto* statuses = argument<int*>(call, 3);
    if (count < 0) {
        (void)taken_by_kind(file, count);
        return file.library->cancel(file.master, count, nullptr, nullptr);
    }
    if (ids == nullptr) return file.library->cancel(file.master, count, ids, statuses);
    Named named = sorted(file, count, ids);
    int error = no_error;
    if (!named.theirs.empty())
        error = file.library->cancel(file.master, static_cast<int>(named.theirs.size()), named.theirs.data(),
                                     named.their_statuses.data());
    return tell(named, std::vector<int>(named.ours.size(), no_error), error, ids, statuses);
}

void DropPendingList::operator()(PendingList* list) const { delete list; }

std::int64_t requests_begun(const File& file) { return file.pending ? file.pending->count() : 0; }

std::int64_t bytes_buffered(const File& file) { return file.pending ? file.pending->buffered() : 0; }

void drop_requests(File& file) { file.pending.reset(); }

}  // namespace ioweir::pnetcdf
