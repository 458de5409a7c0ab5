#include "fault_case.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "container/merge.hpp"
#include "mapped_world.hpp"
#include "mpi_cases/random.hpp"

namespace ioweir {

int handler_calls = 0;

int class_of(int code) {
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

MPI_Offset place_of(int rank, int byte) {
    const MPI_Offset round = piece_bytes * world->ranks + gap_bytes;
    return byte / piece_bytes * round + static_cast<MPI_Offset>(piece_bytes) * rank + byte % piece_bytes;
}

char value_of(int rank, int byte) {
    const auto value = static_cast<unsigned char>(
        cases::Random::mix(static_cast<std::uint64_t>(rank) * 1'000'003 + static_cast<std::uint64_t>(byte)) >> 20);
    return static_cast<char>(value < 128 ? value | 128 : value);
}

namespace {

void count_calls(MPI_File*, int*, ...) { ++handler_calls; }

std::string empty_file() {
    return std::string(static_cast<std::size_t>(place_of(world->ranks, bytes_a_rank) + 50), '.');
}

/// Calls `one(call)` for each of the five, which gives the code and fills the status.
template <typename AnswerType, typename One>
std::vector<AnswerType> answers_of(One one) {
    std::vector<AnswerType> answers;
    for (int call = 0; call < calls; ++call) {
        MPI_Status status;
        AnswerType answer{class_of(one(call, &status)), -1};
        MPI_Get_count(&status, MPI_BYTE, &answer.bytes);
        answers.push_back(answer);
    }
    return answers;
}

}  // namespace

std::string FaultTest::whole_file() {
    std::string text = empty_file();
    for (int r = 0; r < world->ranks; ++r)
        for (int i = 0; i < bytes_a_rank; ++i) text[static_cast<std::size_t>(place_of(r, i))] = value_of(r, i);
    return text;
}

namespace {

void write_through_the_engine(const std::string& path, const std::string& text) {
    MPI_File file = MPI_FILE_NULL;
    ASSERT_EQ(world->engine.open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file),
              MPI_SUCCESS);
    if (world->rank == 0) {
        EXPECT_EQ(world->hooks.File_write_at(file, 0, text.data(), static_cast<int>(text.size()), MPI_BYTE,
                                             MPI_STATUS_IGNORE),
                  MPI_SUCCESS);
    }
    EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_TRUE(is_container(path));
}

}  // namespace

std::string FaultTest::file_bytes() const {
    std::string path = path_;
    const bool merges = is_container(path_);
    if (merges) path += ".merged";
    PMPI_Barrier(MPI_COMM_WORLD);
    storage::PosixBackend posix;
    if (merges && world->rank == 0) (void)container::merge(posix, path_, path);
    const std::vector<unsigned char> there = contents(path);
    if (merges) remove(path);
    return {there.begin(), there.end()};
}

void FaultTest::remove_file() const {
    PMPI_Barrier(MPI_COMM_WORLD);
    if (world->rank == 0) world->hooks.File_delete(path_.c_str(), MPI_INFO_NULL);
    PMPI_Barrier(MPI_COMM_WORLD);
}

void FaultTest::open_file(const std::string& name, bool filled, bool in_groups) {
    path_ = world->directory + "/" + name;
    if (in_groups) {
        ASSERT_NO_FATAL_FAILURE(write_through_the_engine(path_, filled ? whole_file() : empty_file()));
    } else if (world->rank == 0) {
        const std::string before = filled ? whole_file() : empty_file();
        const int fd = ::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
        ASSERT_EQ(::write(fd, before.data(), before.size()), std::ssize(before));
        ::close(fd);
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    file_ = open(world->engine, path_, MPI_MODE_RDWR);
    MPI_Errhandler handler;
    MPI_File_create_errhandler(count_calls, &handler);
    MPI_File_set_errhandler(file_, handler);
    MPI_Errhandler_free(&handler);
    handler_calls = 0;
    MPI_Datatype piece, pieces;
    MPI_Type_contiguous(piece_bytes, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, piece_bytes * world->ranks + gap_bytes, &pieces);
    MPI_Type_commit(&pieces);
    native_view(world->engine, file_, static_cast<MPI_Offset>(piece_bytes) * world->rank, MPI_BYTE, pieces);
    MPI_Type_free(&piece);
    MPI_Type_free(&pieces);
}

std::vector<FaultTest::Answer> FaultTest::write_all_calls() {
    std::string data;
    for (int i = 0; i < bytes_a_rank; ++i) data += value_of(world->rank, i);
    const mpi::FileCalls& io = world->hooks;
    MPI_Request request = MPI_REQUEST_NULL;
    return answers_of<Answer>([&](int call, MPI_Status* status) {
        const char* const part = data.data() + call * bytes_a_call;
        int begun = MPI_SUCCESS;
        switch (call) {
            case 0:
                return io.File_write_at_all(file_, 0, part, bytes_a_call, MPI_BYTE, status);
            case 1:
                io.File_seek(file_, bytes_a_call, MPI_SEEK_SET);
                return io.File_write_all(file_, part, bytes_a_call, MPI_BYTE, status);
            case 2:
                begun = io.File_iwrite_all(file_, part, bytes_a_call, MPI_BYTE, &request);
                EXPECT_EQ(MPI_Wait(&request, status), MPI_SUCCESS);
                return begun;
            case 3:
                EXPECT_EQ(io.File_write_all_begin(file_, part, bytes_a_call, MPI_BYTE), MPI_SUCCESS);
                return io.File_write_all_end(file_, part, status);
            default:
                return io.File_write(file_, part, bytes_a_call, MPI_BYTE, status);
        }
    });
}

std::vector<FaultTest::Answer> FaultTest::read_all_calls(std::string& back) {
    back.assign(bytes_a_rank, '?');
    const mpi::FileCalls& io = world->hooks;
    MPI_Request request = MPI_REQUEST_NULL;
    return answers_of<Answer>([&](int call, MPI_Status* status) {
        char* const part = back.data() + call * bytes_a_call;
        int begun = MPI_SUCCESS;
        switch (call) {
            case 0:
                return io.File_read_at_all(file_, 0, part, bytes_a_call, MPI_BYTE, status);
            case 1:
                io.File_seek(file_, bytes_a_call, MPI_SEEK_SET);
                return io.File_read_all(file_, part, bytes_a_call, MPI_BYTE, status);
            case 2:
                begun = io.File_iread_all(file_, part, bytes_a_call, MPI_BYTE, &request);
                EXPECT_EQ(MPI_Wait(&request, status), MPI_SUCCESS);
                return begun;
            case 3:
                EXPECT_EQ(io.File_read_all_begin(file_, part, bytes_a_call, MPI_BYTE), MPI_SUCCESS);
                return io.File_read_all_end(file_, part, status);
            default:
                return io.File_read(file_, part, bytes_a_call, MPI_BYTE, status);
        }
    });
}

std::vector<FaultTest::Answer> FaultTest::gathered(const std::vector<Answer>& mine) {
    std::vector<Answer> all(mine.size() * static_cast<std::size_t>(world->ranks));
    const int bytes = static_cast<int>(mine.size() * sizeof(Answer));
    PMPI_Allgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, MPI_COMM_WORLD);
    return all;
}

void FaultTest::expect_file(const std::vector<Answer>& all) const {
    std::string expected = empty_file();
    for (int r = 0; r < world->ranks; ++r) {
        for (int i = 0; i < bytes_a_rank; ++i) {
            const Answer& answer = all[static_cast<std::size_t>(r * calls + i / bytes_a_call)];
            if (i % bytes_a_call < answer.bytes) expected[static_cast<std::size_t>(place_of(r, i))] = value_of(r, i);
        }
    }
    EXPECT_EQ(file_bytes(), expected);
}

void FaultTest::expect_nothing_else(const std::vector<Answer>& all) const {
    const std::string there = file_bytes();
    std::string expected = empty_file();
    ASSERT_EQ(there.size(), expected.size());
    for (int r = 0; r < world->ranks; ++r) {
        for (int i = 0; i < bytes_a_rank; ++i) {
            const auto at = static_cast<std::size_t>(place_of(r, i));
            const bool failed = all[static_cast<std::size_t>(r * calls + i / bytes_a_call)].error_class != MPI_SUCCESS;
            if (!failed || there[at] != '.') expected[at] = value_of(r, i);
        }
    }
    EXPECT_EQ(there, expected);
}

std::vector<std::vector<int>> FaultTest::missing_bytes() const {
    const std::string there = file_bytes();
    std::string expected = empty_file();
    std::vector<std::vector<int>> missing(static_cast<std::size_t>(world->ranks), std::vector<int>(calls, 0));
    EXPECT_EQ(there.size(), expected.size());
    if (there.size() != expected.size()) return missing;
    for (int r = 0; r < world->ranks; ++r) {
        for (int i = 0; i < bytes_a_rank; ++i) {
            const auto at = static_cast<std::size_t>(place_of(r, i));
            const bool lost = there[at] == '.';
            missing[static_cast<std::size_t>(r)][static_cast<std::size_t>(i / bytes_a_call)] += lost ? 1 : 0;
            if (!lost) expected[at] = value_of(r, i);
        }
    }
    EXPECT_EQ(there, expected) << "neither as it was nor as it was written";
    return missing;
}

}  // namespace ioweir
