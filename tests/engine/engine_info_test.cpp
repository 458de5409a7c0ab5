// Hints under real MPI processes: what a program asks for and MPI_File_get_info answers, for files that the engine moves and for
// others. What hints mean: src/engine/files/hints_test.cpp.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <map>
#include <string>

#include "engine_world.hpp"

namespace ioweir {
namespace {

constexpr const char* plan_text = R"(
[[file]]
match = "*.fixed"
writers = "everyone"
stripe = { size = "2 MiB" }

[[file]]
match = "*.engine"

[[file]]
match = "*.left"
writers = "delegates:1/2"
)";

[[maybe_unused]] const testing::Environment* const registered = add_world(plan_text);

using Hints = std::map<std::string, std::string>;

class InfoTest : public EngineTest {
protected:
    MPI_File open_with(const std::string& path, const Hints& hints) {
        MPI_Info info = MPI_INFO_NULL;
        MPI_Info_create(&info);
        for (const auto& [key, value] : hints) MPI_Info_set(info, key.c_str(), value.c_str());
        MPI_File file = MPI_FILE_NULL;
        EXPECT_EQ(world->hooks.File_open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file),
                  MPI_SUCCESS);
        for (const auto& [key, value] : hints)
            EXPECT_EQ(value_of(info, key), value) << "the program's own is not changed";
        MPI_Info_free(&info);
        return file;
    }
    static std::string value_of(MPI_Info info, const std::string& key) {
        char value[MPI_MAX_INFO_VAL + 1] = {};
        int found = 0;
        MPI_Info_get(info, key.c_str(), MPI_MAX_INFO_VAL, value, &found);
        return found != 0 ? value : "(none)";
    }
    static std::string hint(const mpi::FileCalls& calls, MPI_File file, const std::string& key) {
        MPI_Info info = MPI_INFO_NULL;
        EXPECT_EQ(calls.File_get_info(file, &info), MPI_SUCCESS);
        const std::string value = value_of(info, key);
        MPI_Info_free(&info);
        return value;
    }
    static std::string hint(MPI_File file, const std::string& key) { return hint(world->hooks, file, key); }

    void write_and_close(MPI_File file, const std::string& path) {
        const auto value = static_cast<unsigned char>('a' + world->rank);
        EXPECT_EQ(world->hooks.File_write_at_all(file, world->rank, &value, 1, MPI_BYTE, MPI_STATUS_IGNORE),
                  MPI_SUCCESS);
        world->hooks.File_close(&file);
        EXPECT_EQ(static_cast<int>(contents(path).size()), world->ranks);
        remove(path);
    }
};

TEST_F(InfoTest, ThePlanWinsAndWhatIsInEffectIsAnswered) {
    const std::string path = world->path("a.fixed");
    const MPI_File file = open_with(path, {{"cb_nodes", "1"}, {"romio_ds_write", "enable"}, {"striping_unit", "4096"}});
    EXPECT_EQ(hint(file, "ioweir_writers"), "everyone");
    EXPECT_EQ(hint(file, "cb_nodes"), hint(world->below, file, "cb_nodes")) << "of the calls left to the library";
    EXPECT_EQ(hint(file, "romio_cb_write"), "disable");
    EXPECT_EQ(hint(file, "romio_ds_write"), "disable");
    EXPECT_EQ(hint(file, "ioweir_mapping"), "shared");
    EXPECT_EQ(hint(file, "ioweir_domains"), "even");
    EXPECT_EQ(hint(file, "ioweir_order"), "sequential");
    EXPECT_TRUE(world->count(format::NoteCode::message) == 0);
    write_and_close(file, path);
}

TEST_F(InfoTest, HintsChooseTheWriters) {
    const std::string path = world->path("w.engine");
    const MPI_File file = open_with(
        path,
        {{"cb_nodes", "2"}, {"cb_buffer_size", "65536"}, {"romio_cb_read", "disable"}, {"ioweir_domains", "cyclic"}});
    EXPECT_EQ(hint(file, "ioweir_writers"), "aggregators:2");
    EXPECT_EQ(hint(file, "cb_nodes"), std::to_string(std::min(2, world->ranks)));
    EXPECT_EQ(hint(file, "cb_buffer_size"), "65536");
    EXPECT_EQ(hint(file, "romio_cb_write"), "enable");
    EXPECT_EQ(hint(file, "romio_cb_read"), "disable");
    EXPECT_EQ(hint(file, "romio_ds_write"), "automatic");
    EXPECT_EQ(hint(file, "ioweir_domains"), "cyclic");
    char byte = 0;
    EXPECT_EQ(world->hooks.File_read_at_all(file, 0, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    if (world->rank == 0) {
        EXPECT_TRUE(world->noted(format::NoteCode::plan_applied, "writers aggregators:2, domains cyclic"));
    }
    write_and_close(file, path);
    if (world->ranks > 1) {
        EXPECT_EQ(world->did(&Did::calls), 2);
        EXPECT_EQ(world->did(&Did::exchanges), 1) << "the write, and not the read";
    }
}

// Open MPI's info has no cb_nodes by itself, and by default an error about an info object ends the program.
TEST_F(InfoTest, ANumberOfWritersThatIsFoundForEachCallIsNotAnswered) {
    const std::string path = world->path("auto.engine");
    const MPI_File file = open_with(path, {{"ioweir_writers", "aggregators:auto"}});
    EXPECT_EQ(hint(file, "ioweir_writers"), "aggregators:auto");
    EXPECT_EQ(hint(file, "cb_nodes"), "(none)");
    EXPECT_EQ(hint(file, "romio_cb_write"), "enable");
    write_and_close(file, path);
    const MPI_File given = open_with(path, {{"ioweir_writers", "aggregators:auto"}, {"cb_nodes", "1"}});
    EXPECT_EQ(hint(given, "cb_nodes"), "(none)");
    write_and_close(given, path);
}

TEST_F(InfoTest, TheLibraryIsToldTheStripingAndNotToSieveWrites) {
#if defined(OPEN_MPI)
    GTEST_SKIP() << "Open MPI's info says what was asked for, not what is in effect";
#endif
    const std::string path = world->path("b.fixed");
    MPI_File file = open_with(path, {{"romio_ds_write", "enable"}, {"striping_unit", "4096"}});
    EXPECT_EQ(hint(world->below, file, "romio_ds_write"), "disable");
    EXPECT_EQ(hint(world->below, file, "striping_unit"), std::to_string(2 << 20));
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_ds_write", "enable");
    EXPECT_EQ(world->hooks.File_set_info(file, info), MPI_SUCCESS);
    EXPECT_EQ(hint(world->below, file, "romio_ds_write"), "disable");
    char native[] = "native";
    EXPECT_EQ(world->hooks.File_set_view(file, 0, MPI_BYTE, MPI_BYTE, native, info), MPI_SUCCESS);
    EXPECT_EQ(hint(world->below, file, "romio_ds_write"), "disable");
    MPI_Info_free(&info);
    write_and_close(file, path);
}

TEST_F(InfoTest, WrongValuesAreNotedAndNoErrors) {
    const std::string path = world->path("c.engine");
    const MPI_File file = open_with(path, {{"ioweir_order", "any"}, {"ioweir_buffer", "none"}});
    EXPECT_EQ(hint(file, "ioweir_order"), "sequential");
    EXPECT_EQ(world->count(format::NoteCode::message), world->rank == 0 ? 2 : 0);
    if (world->rank == 0) {
        EXPECT_TRUE(world->noted(format::NoteCode::message, "hint ioweir_order = 'any'"));
    }
    write_and_close(file, path);
}

TEST_F(InfoTest, HintsForWhatIsNotExecutedAreNotUsed) {
    const std::string path = world->path("d.engine");
    const MPI_File file = open_with(path, {{"ioweir_writers", "delegates:1/2"}});
    EXPECT_EQ(hint(file, "ioweir_writers"), "everyone");
    EXPECT_EQ(world->count(format::NoteCode::message), world->rank == 0 ? 1 : 0);
    EXPECT_EQ(world->count(format::NoteCode::plan_applied), world->rank == 0 ? 1 : 0);
    write_and_close(file, path);
}

TEST_F(InfoTest, HintsThatDifferBetweenRanksAreNotUsed) {
    if (world->ranks < 2) GTEST_SKIP() << "needs two ranks";
    const std::string path = world->path("e.engine");
    const MPI_File file = open_with(path, world->rank == 1 ? Hints{{"ioweir_buffer", "8 MiB"}} : Hints{});
    EXPECT_EQ(world->count(format::NoteCode::plan_applied), world->rank == 0 ? 1 : 0);
    if (world->rank == 0) {
        EXPECT_TRUE(world->noted(format::NoteCode::message, "differ between ranks"));
        EXPECT_FALSE(world->noted(format::NoteCode::plan_applied, "buffer"));
    }
    write_and_close(file, path);
}

TEST_F(InfoTest, AnswersAboutOtherFilesAreTheLibrarys) {
    for (const char* name : {"f.left", "f.other"}) {
        const std::string path = world->path(name);
        const MPI_File file = open_with(path, {});
        EXPECT_EQ(hint(file, "ioweir_writers"), "(none)");
        EXPECT_EQ(hint(file, "romio_ds_write"), hint(world->below, file, "romio_ds_write"));
        write_and_close(file, path);
    }
}

}  // namespace
}  // namespace ioweir
