// The engine uses the striping that a file system tells where plan and program say nothing, and tells what it wants where that can be
// said. The file system is played by the backend: no Lustre or CephFS is asked.
#include <cstdint>
#include <string>
#include <vector>

#include "engine_world.hpp"

namespace ioweir {
namespace {

using cases::IoCalls;

constexpr const char* plan_text = R"(
[[file]]
match = "*.aligned"
writers = "aggregators:2"
domains = "aligned"
buffer = "1 MiB"

[[file]]
match = "*.auto"
writers = "aggregators:auto"
buffer = "1 MiB"

[[file]]
match = "*.asked"
writers = "everyone"
stripe = { size = "64 KiB", count = 4 }
)";

[[maybe_unused]] const testing::Environment* const registered = add_world(plan_text);

std::string raw_lov(std::uint32_t stripe_bytes, std::uint16_t count) {
    struct {
        std::uint32_t magic = 0x0BD10BD0, pattern = 1;
        char id[16] = {};
        std::uint32_t size;
        std::uint16_t count, generation = 0;
    } lov{.size = stripe_bytes, .count = count};
    return {reinterpret_cast<const char*>(&lov), sizeof lov};
}

std::string hint(MPI_File file, const char* key) {
    MPI_Info info = MPI_INFO_NULL;
    EXPECT_EQ(world->hooks.File_get_info(file, &info), MPI_SUCCESS);
    char value[64] = {};
    int found = 0;
    MPI_Info_get(info, key, sizeof value - 1, value, &found);
    MPI_Info_free(&info);
    return found != 0 ? value : "";
}

class Striping : public EngineTest {
protected:
    void TearDown() override { world->backend.attributes.clear(); }
};

// 1000 bytes a rank, interleaved: two writers with aligned domains meet at a multiple of 700, with even ones in the middle.
TEST_F(Striping, ToldByTheFileSystemAlignsDomains) {
    const IoCalls& io = world->engine;
    const std::string path = world->path("told.aligned");
    world->backend.attributes["lustre.lov"] = raw_lov(700, 3);
    MPI_File file = open(io, path);
    EXPECT_EQ(hint(file, "striping_unit"), "700");
    EXPECT_EQ(hint(file, "striping_factor"), "3");
    MPI_Datatype pieces;
    MPI_Type_vector(100, 10, 10 * world->ranks, MPI_BYTE, &pieces);
    MPI_Type_commit(&pieces);
    native_view(io, file, 10 * world->rank, MPI_BYTE, pieces);
    const std::vector<unsigned char> data(1000, static_cast<unsigned char>('a' + world->rank));
    world->backend.take_offsets();
    EXPECT_EQ(io.write_at_all(file, 0, data.data(), 1000, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    for (const std::int64_t offset : world->backend.take_offsets())
        EXPECT_EQ(world->ranks > 1 ? offset % 700 : 0, 0) << offset;
    MPI_Type_free(&pieces);
    io.close(&file);
    const std::vector<unsigned char> there = contents(path);
    EXPECT_EQ(there.size(), 1000u * static_cast<std::size_t>(world->ranks));
    for (std::size_t i = 0; i < there.size(); ++i)
        ASSERT_EQ(there[i], 'a' + i / 10 % static_cast<std::size_t>(world->ranks));
    remove(path);
}

TEST_F(Striping, ToldByTheFileSystemSaysHowManyAggregators) {
    const IoCalls& io = world->engine;
    for (const int targets : {1, 2, 3}) {
        const std::string path = world->path("told.auto");
        world->backend.attributes["lustre.lov"] = raw_lov(65536, static_cast<std::uint16_t>(targets));
        MPI_File file = open(io, path);
        const std::vector<unsigned char> data(600, 'x');
        world->backend.take_writes();
        EXPECT_EQ(io.write_at_all(file, 600 * world->rank, data.data(), 600, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        std::int64_t writers = world->backend.take_writes() > 0 ? 1 : 0;
        PMPI_Allreduce(MPI_IN_PLACE, &writers, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        EXPECT_EQ(writers, std::min<std::int64_t>(targets, world->ranks));
        io.close(&file);
        remove(path);
    }
}

TEST_F(Striping, IsAskedForOnceWhereItCanBe) {
    const IoCalls& io = world->engine;
    const std::string path = world->path("new.asked");
    auto& attributes = world->backend.attributes;
    attributes = {{"ceph.file.layout.stripe_unit", "4194304"},
                  {"ceph.file.layout.stripe_count", "1"},
                  {"ceph.file.layout.object_size", "4194304"}};
    MPI_File file = open(io, path);
    EXPECT_EQ(attributes["ceph.file.layout"],
              world->rank == 0 ? "stripe_unit=65536 stripe_count=4 object_size=4194304" : "");
    io.close(&file);
    remove(path);
}

TEST_F(Striping, ThatCannotBeHadIsSaid) {
    const IoCalls& io = world->engine;
    const std::string path = world->path("other.asked");
    world->backend.attributes["lustre.lov"] = raw_lov(1 << 20, 1);
    MPI_File file = open(io, path);
    EXPECT_EQ(hint(file, "striping_unit"), "1048576");
    io.close(&file);
    EXPECT_EQ(world->noted(format::NoteCode::message,
                           "stripes of 64 KiB over 4 targets wanted, Lustre has stripes of 1 MiB over 1 targets"),
              world->rank == 0);
    remove(path);
}

TEST_F(Striping, IsNotMentionedWhereNobodyTells) {
    const IoCalls& io = world->engine;
    const std::string path = world->path("plain.aligned");
    MPI_File file = open(io, path);
    io.close(&file);
    EXPECT_EQ(world->count(format::NoteCode::message), 0);
    remove(path);
}

}  // namespace
}  // namespace ioweir
