#include "engine_world.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/testing.hpp"

namespace ioweir {

World* world = nullptr;

std::int64_t World::count(format::NoteCode code) const {
    return std::count_if(notes.begin(), notes.end(), [&](const Note& note) { return note.code == code; });
}

std::int64_t World::did(std::int64_t Did::* figure) const {
    std::int64_t sum = 0;
    for (const Did& one : work) sum += one.*figure;
    return sum;
}

bool World::noted(format::NoteCode code, const std::string& part) const {
    return std::any_of(notes.begin(), notes.end(), [&](const Note& note) {
        return note.code == code && note.text.find(part) != std::string::npos;
    });
}

std::int64_t World::found(format::VerifyOutcome outcome, const std::string& part) const {
    std::int64_t bytes = 0;
    for (const Finding& finding : findings)
        if (finding.outcome == outcome && finding.text.find(part) != std::string::npos) bytes += finding.bytes;
    return bytes;
}

cases::IoCalls calls_of(const mpi::FileCalls& table) {
    return {table.File_open,         table.File_close,       table.File_set_view,  table.File_read_at,
            table.File_read_at_all,  table.File_read,        table.File_read_all,  table.File_write_at,
            table.File_write_at_all, table.File_write,       table.File_write_all, table.File_sync,
            table.File_seek,         table.File_get_position};
}

namespace {

class EnvironmentWithEngine : public testing::Environment {
public:
    EnvironmentWithEngine(std::string plan_text, const WorldOptions& options)
        : plan_text_(std::move(plan_text)), options_(options) {}

    void SetUp() override {
        world = new World;
        PMPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
        PMPI_Comm_size(MPI_COMM_WORLD, &world->ranks);
        char name[PATH_MAX] = {};
        if (world->rank == 0) {
            folder_.emplace();
            folder_->path().copy(name, sizeof name - 1);
        }
        PMPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
        world->directory = name;
        if (const char* given = std::getenv("IOWEIR_TEST_CASES")) world->cases = std::strtoull(given, nullptr, 10);
        mpi::fill(world->below, "PMPI_", [](const char* prefix, const char* function) {
            return ::dlsym(RTLD_DEFAULT, (std::string(prefix) + function).c_str());
        });
        if (options_.change_library != nullptr) options_.change_library(world->below);
        world->hooks = world->below;
        auto plan = policy::parse_plan_file(plan_text_, "test plan");
        ASSERT_TRUE(plan.ok()) << plan.error().message();
        if (options_.change_plan != nullptr) options_.change_plan(plan.value());
        engine::Options options{.plan = plan.take(),
                                .verify = options_.verify && (world->rank == 0 || !options_.only_first_verifies),
                                .backend = options_.plain ? nullptr : &world->backend,
                                .weighs = options_.weighs,
                                .trial_pace = options_.trial_pace};
        engine::Host host;
        static const std::uint32_t no_descriptors = 0;
        if (options_.plain) host.descriptors_gone = &no_descriptors;
        host.program_has_open = options_.program_has_open;
        host.note = [](format::NoteCode code, const char* path, std::int64_t value, const char* text) {
            world->notes.push_back({code, path, value, text});
        };
        host.step = [](const engine::Step& step) {
            if (world->on_step != nullptr) world->on_step(step);
        };
        host.did = [](const char*, const engine::Totals& totals) { world->work.push_back(Did::of(totals)); };
        host.weighed = [](const char*, format::CallKind call, format::Chosen chosen,
                          const format::WeighedFigures<std::int64_t>& figures) {
            world->weighed.push_back({call, chosen, figures});
        };
        host.verified = [](const engine::VerifyFinding& finding) {
            world->findings.push_back(
                {finding.outcome, finding.calls, finding.bytes, finding.offset, finding.path, finding.text});
        };
        engine::install(world->below, world->hooks, std::move(options), host);
        world->library = calls_of(world->below);
        world->engine = calls_of(world->hooks);
    }
    void TearDown() override {
        engine::shut_down();
        PMPI_Barrier(MPI_COMM_WORLD);
        folder_.reset();
    }

private:
    std::string plan_text_;
    WorldOptions options_;
    std::optional<TemporaryFolder> folder_;  // of rank 0, for all ranks
};

}  // namespace

testing::Environment* add_world(const std::string& plan_text, const WorldOptions& options) {
    return testing::AddGlobalTestEnvironment(new EnvironmentWithEngine(plan_text, options));
}

testing::Environment* add_world(const std::string& plan_text, bool verify) {
    return add_world(plan_text, WorldOptions{.verify = verify});
}

void EngineTest::SetUp() {
    world->notes.clear();
    world->work.clear();
    world->weighed.clear();
    world->findings.clear();
    world->backend.arm({});
    PMPI_Barrier(MPI_COMM_WORLD);
}

bool EngineTest::on_any_rank(bool mine) {
    int value = mine ? 1 : 0;
    PMPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return value != 0;
}

MPI_File EngineTest::open(const cases::IoCalls& io, const std::string& path, int amode, MPI_Comm comm) {
    MPI_File file = MPI_FILE_NULL;
    EXPECT_EQ(io.open(comm, path.c_str(), amode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    return file;
}

void EngineTest::remove(const std::string& path) {
    PMPI_Barrier(MPI_COMM_WORLD);
    if (world->rank == 0) ::unlink(path.c_str());
    PMPI_Barrier(MPI_COMM_WORLD);
}

std::vector<unsigned char> EngineTest::contents(const std::string& path) {
    PMPI_Barrier(MPI_COMM_WORLD);
    std::vector<unsigned char> bytes;
    const int fd = ::open(path.c_str(), O_RDONLY);
    unsigned char buffer[4096];
    for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof buffer)) > 0;)
        bytes.insert(bytes.end(), buffer, buffer + got);
    ::close(fd);
    return bytes;
}

void EngineTest::native_view(const cases::IoCalls& io, MPI_File file, MPI_Offset displacement, MPI_Datatype etype,
                             MPI_Datatype filetype) {
    char native[] = "native";
    EXPECT_EQ(io.set_view(file, displacement, etype, filetype, native, MPI_INFO_NULL), MPI_SUCCESS);
}

std::string all_problems(const cases::CaseResult& result) {
    std::string text;
    for (const std::string& problem : result.problems) text += problem + "; ";
    return text.empty() ? text : text + "in: " + result.text;
}

}  // namespace ioweir
