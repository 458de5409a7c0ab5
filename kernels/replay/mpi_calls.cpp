// MPI-IO calls, by the name that a trace gives them, and what orders the ranks.
#include <climits>
#include <ctime>
#include <string_view>

#include "kernels/replay/calls.hpp"

namespace ioweir::replay {
namespace {

using Arguments = const std::int64_t*;

int as_count(std::int64_t count) {
    if (count < 0 || count > INT_MAX) fail("a count of " + std::to_string(count) + " is no int of MPI's");
    return static_cast<int>(count);
}

MPI_File handle(Job& job, std::int64_t number) { return Job::at(job.handles, number, "MPI file"); }
MPI_Datatype type(Job& job, std::int64_t number) { return Job::at(job.types, number, "type").type; }

void moved(Job& job, const Call& call, const MPI_Status& status) {
    int bytes = 0;
    if (MPI_Get_count(&status, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes == MPI_UNDEFINED) return;
    (call.counts == Counts::write ? job.written_bytes : job.read_bytes) += bytes;
}
void* data(Job& job, std::int64_t type, std::int64_t count, const Call& call) {
    return job.memory(type, count, call.counts == Counts::write);
}

/// H OFFSET COUNT TYPE
template <auto function>
void at_offset(Job& job, Arguments a, const Call& call) {
    MPI_Status status;
    const int code =
        function(handle(job, a[0]), a[1], data(job, a[3], a[2], call), as_count(a[2]), type(job, a[3]), &status);
    job.check(code, call.name);
    if (code == MPI_SUCCESS) moved(job, call, status);
}
/// H COUNT TYPE
template <auto function>
void at_pointer(Job& job, Arguments a, const Call& call) {
    MPI_Status status;
    const int code = function(handle(job, a[0]), data(job, a[2], a[1], call), as_count(a[1]), type(job, a[2]), &status);
    job.check(code, call.name);
    if (code == MPI_SUCCESS) moved(job, call, status);
}
/// H OFFSET COUNT TYPE REQUEST
template <auto function>
void start_at_offset(Job& job, Arguments a, const Call& call) {
    MPI_Request& request = Job::at(job.requests, a[4], "request");
    job.check(function(handle(job, a[0]), a[1], data(job, a[3], a[2], call), as_count(a[2]), type(job, a[3]), &request),
              call.name);
    (call.counts == Counts::write ? job.written_bytes : job.read_bytes) += a[2] * Job::at(job.types, a[3], "type").size;
}
/// H COUNT TYPE REQUEST
template <auto function>
void start_at_pointer(Job& job, Arguments a, const Call& call) {
    MPI_Request& request = Job::at(job.requests, a[3], "request");
    job.check(function(handle(job, a[0]), data(job, a[2], a[1], call), as_count(a[1]), type(job, a[2]), &request),
              call.name);
    (call.counts == Counts::write ? job.written_bytes : job.read_bytes) += a[1] * Job::at(job.types, a[2], "type").size;
}
/// The beginning of a split collective, counted where it ends: H OFFSET COUNT TYPE, or H COUNT TYPE
template <auto function>
void begin_at_offset(Job& job, Arguments a, const Call& call) {
    const bool writes = std::string_view(call.name).find("write") != std::string_view::npos;
    job.check(function(handle(job, a[0]), a[1], job.memory(a[3], a[2], writes), as_count(a[2]), type(job, a[3])),
              call.name);
}
template <auto function>
void begin_at_pointer(Job& job, Arguments a, const Call& call) {
    const bool writes = std::string_view(call.name).find("write") != std::string_view::npos;
    job.check(function(handle(job, a[0]), job.memory(a[2], a[1], writes), as_count(a[1]), type(job, a[2])), call.name);
}
/// H. MPI wants the buffer of the beginning, which no library looks at.
template <auto function>
void end_split(Job& job, Arguments a, const Call& call) {
    MPI_Status status;
    const int code = function(handle(job, a[0]), job.bytes(0, call.counts == Counts::write), &status);
    job.check(code, call.name);
    if (code == MPI_SUCCESS) moved(job, call, status);
}
/// H
template <auto function>
void plain(Job& job, Arguments a, const Call& call) {
    job.check(function(handle(job, a[0])), call.name);
}
/// H VALUE
template <auto function>
void with_value(Job& job, Arguments a, const Call& call) {
    job.check(function(handle(job, a[0]), a[1]), call.name);
}
/// H, and an answer that nobody needs
template <typename Answer, auto function>
void asks(Job& job, Arguments a, const Call& call) {
    Answer answer{};
    job.check(function(handle(job, a[0]), &answer), call.name);
}

void open(Job& job, Arguments a, const Call& call) {  // H FILE AMODE GROUP
    const std::string path = job.path(a[1]);
    MPI_File& opened = Job::at(job.handles, a[0], "MPI file");
    job.check(
        MPI_File_open(Job::at(job.communicators, a[3], "group"), path.c_str(), as_count(a[2]), job.hints, &opened),
        call.name);
}
void close(Job& job, Arguments a, const Call& call) {
    job.check(MPI_File_close(&Job::at(job.handles, a[0], "MPI file")), call.name);
}
void set_view(Job& job, Arguments a, const Call& call) {  // H DISPLACEMENT ETYPE FILETYPE REPRESENTATION
    const char* const names[] = {"native", "external32", "internal"};
    if (a[4] < 0 || a[4] > 2) fail("there is no data representation " + std::to_string(a[4]));
    job.check(MPI_File_set_view(handle(job, a[0]), a[1], type(job, a[2]), type(job, a[3]), names[a[4]], MPI_INFO_NULL),
              call.name);
}
void seek(Job& job, Arguments a, const Call& call) {
    job.check(MPI_File_seek(handle(job, a[0]), a[1], MPI_SEEK_SET), call.name);
}
void seek_shared(Job& job, Arguments a, const Call& call) {
    job.check(MPI_File_seek_shared(handle(job, a[0]), a[1], MPI_SEEK_SET), call.name);
}
void set_atomicity(Job& job, Arguments a, const Call& call) {
    job.check(MPI_File_set_atomicity(handle(job, a[0]), static_cast<int>(a[1])), call.name);
}
void remove_file(Job& job, Arguments a, const Call& call) {  // FILE
    job.check(MPI_File_delete(job.path(a[0]).c_str(), MPI_INFO_NULL), call.name);
}
void set_info(Job& job, Arguments a, const Call& call) {
    job.check(MPI_File_set_info(handle(job, a[0]), job.hints), call.name);
}
void get_info(Job& job, Arguments a, const Call& call) {
    MPI_Info info = MPI_INFO_NULL;
    job.check(MPI_File_get_info(handle(job, a[0]), &info), call.name);
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
}
void get_group(Job& job, Arguments a, const Call& call) {
    MPI_Group group = MPI_GROUP_NULL;
    job.check(MPI_File_get_group(handle(job, a[0]), &group), call.name);
    if (group != MPI_GROUP_NULL) MPI_Group_free(&group);
}
void get_view(Job& job, Arguments a, const Call& call) {
    MPI_Offset displacement;
    MPI_Datatype etype, filetype;
    char representation[MPI_MAX_DATAREP_STRING];
    job.check(MPI_File_get_view(handle(job, a[0]), &displacement, &etype, &filetype, representation), call.name);
    for (MPI_Datatype* each : {&etype, &filetype}) {
        int integers, addresses, types, combiner;
        MPI_Type_get_envelope(*each, &integers, &addresses, &types, &combiner);
        if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(each);
    }
}
void get_byte_offset(Job& job, Arguments a, const Call& call) {  // H OFFSET
    MPI_Offset place;
    job.check(MPI_File_get_byte_offset(handle(job, a[0]), a[1], &place), call.name);
}
void get_type_extent(Job& job, Arguments a, const Call& call) {
    MPI_Aint extent;
    job.check(MPI_File_get_type_extent(handle(job, a[0]), MPI_BYTE, &extent), call.name);
}

/// A list of requests.
std::vector<MPI_Request> taken(Job& job, Arguments a) {
    std::vector<MPI_Request> all;
    const std::int64_t count = job.script.lists[static_cast<std::size_t>(a[0])];
    for (std::int64_t i = 1; i <= count; ++i) {
        MPI_Request& request = Job::at(job.requests, job.script.lists[static_cast<std::size_t>(a[0] + i)], "request");
        all.push_back(request);
        request = MPI_REQUEST_NULL;
    }
    return all;
}
void wait_each(Job& job, Arguments a, const Call& call) {
    for (MPI_Request& request : taken(job, a)) job.check(MPI_Wait(&request, MPI_STATUS_IGNORE), call.name);
}
void wait_all(Job& job, Arguments a, const Call& call) {
    std::vector<MPI_Request> all = taken(job, a);
    job.check(MPI_Waitall(static_cast<int>(all.size()), all.data(), MPI_STATUSES_IGNORE), call.name);
}
void test_each(Job& job, Arguments a, const Call& call) {
    for (MPI_Request& request : taken(job, a)) {
        for (int done = 0; done == 0;) {
            const int code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            job.check(code, call.name);
            if (code != MPI_SUCCESS) break;
        }
    }
}

/// Waits as the program computed, or waited for other ranks.
void think(Job& job, Arguments a, const Call&) {
    const auto wanted = static_cast<std::int64_t>(static_cast<double>(a[0]) * job.think);
    timespec begun{};
    ::clock_gettime(CLOCK_MONOTONIC, &begun);
    const std::int64_t end = begun.tv_sec * 1'000'000'000 + begun.tv_nsec + wanted;
    constexpr std::int64_t spun = 60'000;  // the kernel wakes sleepers so late
    if (wanted > 2 * spun) {
        const timespec until{(end - spun) / 1'000'000'000, (end - spun) % 1'000'000'000};
        ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    }
    for (timespec now{};;) {
        ::clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec * 1'000'000'000 + now.tv_nsec >= end) return;
    }
}
/// RANK TAG: what that rank does behind its `after` waits for what this one has done.
void before(Job& job, Arguments a, const Call&) {
    MPI_Isend(nullptr, 0, MPI_BYTE, static_cast<int>(a[0]), static_cast<int>(a[1]), MPI_COMM_WORLD,
              &job.signals.emplace_back());
}
void after(Job&, Arguments a, const Call&) {
    MPI_Recv(nullptr, 0, MPI_BYTE, static_cast<int>(a[0]), static_cast<int>(a[1]), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
void meet(Job&, Arguments, const Call&) { MPI_Barrier(MPI_COMM_WORLD); }

constexpr Counts W = Counts::write, R = Counts::read, O = Counts::other, N = Counts::not_io;

#define AT(name, kind) {#name, 4, kind, 3, 2, at_offset<name>}
#define POINTER(name, kind) {#name, 3, kind, 2, 1, at_pointer<name>}
#define START_AT(name, kind) {#name, 5, kind, 3, 2, start_at_offset<name>}
#define START(name, kind) {#name, 4, kind, 2, 1, start_at_pointer<name>}
#define BEGIN_AT(name) {#name, 4, O, 3, 2, begin_at_offset<name>}
#define BEGIN(name) {#name, 3, O, 2, 1, begin_at_pointer<name>}
#define END(name, kind) {#name, 1, kind, -1, -1, end_split<name>}

const Call table[] = {
    {"think", 1, N, -1, -1, think},
    {"before", 2, N, -1, -1, before},
    {"after", 2, N, -1, -1, after},
    {"MPI_Barrier", 0, N, -1, -1, meet},
    {"MPI_File_open", 4, O, -1, -1, open},
    {"MPI_File_close", 1, O, -1, -1, close},
    {"MPI_File_set_view", 5, O, -1, -1, set_view},
    AT(MPI_File_read_at, R),
    AT(MPI_File_read_at_all, R),
    AT(MPI_File_write_at, W),
    AT(MPI_File_write_at_all, W),
    POINTER(MPI_File_read, R),
    POINTER(MPI_File_read_all, R),
    POINTER(MPI_File_write, W),
    POINTER(MPI_File_write_all, W),
    POINTER(MPI_File_read_shared, R),
    POINTER(MPI_File_read_ordered, R),
    POINTER(MPI_File_write_shared, W),
    POINTER(MPI_File_write_ordered, W),
    START_AT(MPI_File_iread_at, R),
    START_AT(MPI_File_iread_at_all, R),
    START_AT(MPI_File_iwrite_at, W),
    START_AT(MPI_File_iwrite_at_all, W),
    START(MPI_File_iread, R),
    START(MPI_File_iread_all, R),
    START(MPI_File_iread_shared, R),
    START(MPI_File_iwrite, W),
    START(MPI_File_iwrite_all, W),
    START(MPI_File_iwrite_shared, W),
    BEGIN_AT(MPI_File_read_at_all_begin),
    BEGIN_AT(MPI_File_write_at_all_begin),
    BEGIN(MPI_File_read_all_begin),
    BEGIN(MPI_File_write_all_begin),
    BEGIN(MPI_File_read_ordered_begin),
    BEGIN(MPI_File_write_ordered_begin),
    END(MPI_File_read_at_all_end, R),
    END(MPI_File_write_at_all_end, W),
    END(MPI_File_read_all_end, R),
    END(MPI_File_write_all_end, W),
    END(MPI_File_read_ordered_end, R),
    END(MPI_File_write_ordered_end, W),
    {"MPI_File_sync", 1, O, -1, -1, plain<MPI_File_sync>},
    {"MPI_File_set_size", 2, O, -1, -1, with_value<MPI_File_set_size>},
    {"MPI_File_preallocate", 2, O, -1, -1, with_value<MPI_File_preallocate>},
    {"MPI_File_get_size", 1, O, -1, -1, asks<MPI_Offset, MPI_File_get_size>},
    {"MPI_File_get_position", 1, O, -1, -1, asks<MPI_Offset, MPI_File_get_position>},
    {"MPI_File_get_position_shared", 1, O, -1, -1, asks<MPI_Offset, MPI_File_get_position_shared>},
    {"MPI_File_get_amode", 1, O, -1, -1, asks<int, MPI_File_get_amode>},
    {"MPI_File_get_atomicity", 1, O, -1, -1, asks<int, MPI_File_get_atomicity>},
    {"MPI_File_get_byte_offset", 2, O, -1, -1, get_byte_offset},
    {"MPI_File_get_info", 1, O, -1, -1, get_info},
    {"MPI_File_get_group", 1, O, -1, -1, get_group},
    {"MPI_File_get_view", 1, O, -1, -1, get_view},
    {"MPI_File_get_type_extent", 1, O, -1, -1, get_type_extent},
    {"MPI_File_set_info", 1, O, -1, -1, set_info},
    {"MPI_File_set_atomicity", 2, O, -1, -1, set_atomicity},
    {"MPI_File_seek", 2, O, -1, -1, seek},
    {"MPI_File_seek_shared", 2, O, -1, -1, seek_shared},
    {"MPI_File_delete", 1, O, -1, -1, remove_file},
    {"MPI_Wait", -1, O, -1, -1, wait_each},
    {"MPI_Waitall", -1, O, -1, -1, wait_all},
    {"MPI_Test", -1, O, -1, -1, test_each},
};

}  // namespace

std::span<const Call> mpi_calls() { return table; }

}  // namespace ioweir::replay
