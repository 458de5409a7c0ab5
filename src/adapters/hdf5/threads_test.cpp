// Threads that call HDF5 at the same time, as they may call one that is built thread-safe: the tables of the adapter, and the marks.
// Here, too: files that names do not tell apart, and children. The library is a stand-in that counts ids under a lock; real ones are in
// tests/trace/test_hdf5_objects.py.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "adapters/hdf5/adapter.hpp"
#include "adapters/hdf5/call.hpp"
#include "adapters/hdf5/library.hpp"

namespace ioweir::hdf5 {
namespace {

constexpr int dataset_kind = 5;  // H5I_DATASET

struct Object {
    int kind = 0;
    std::string file;           ///< as it was named
    unsigned long opening = 0;  ///< a number of the file that is open
};

/// What the stand-in has open.
struct World {
    std::mutex mutex;
    std::map<Id, Object> objects;
    std::map<std::string, unsigned long> openings;  ///< by the whole path
    unsigned long last_opening = 0;
    Id last = 100;
};
World world;
std::atomic<int> notes{0};
Id access_class = 7;
Id dataset_class = 8;

Id make(const Object& object) {
    const std::lock_guard lock(world.mutex);
    world.objects[++world.last] = object;
    return world.last;
}

Object object_of(Id id) {
    const std::lock_guard lock(world.mutex);
    const auto found = world.objects.find(id);
    return found != world.objects.end() ? found->second : Object{};
}

Id open_file(const char* name, unsigned, Id) {
    const std::string path = std::filesystem::absolute(name).lexically_normal();
    unsigned long opening = 0;
    {
        const std::lock_guard lock(world.mutex);
        const auto [found, is_new] = world.openings.try_emplace(path, world.last_opening + 1);
        if (is_new) ++world.last_opening;
        opening = found->second;
    }
    return make({kind_file, name, opening});
}

Id make_dataset(Id place, const char*, Id, Id, Id, Id, Id) {
    Object object = object_of(place);
    object.kind = dataset_kind;
    return make(object);
}

/// H5O_info1_t begins with the file's number.
int tell_place(Id id, unsigned long* info, unsigned) {
    info[0] = object_of(id).opening;
    return info[0] != 0 ? 0 : -1;
}

int move_data(Id, Id, Id, Id, Id, const void*) { return 0; }

int close_id(Id id) {
    const std::lock_guard lock(world.mutex);
    return world.objects.erase(id) == 1 ? 0 : -1;
}

std::int64_t tell_name(Id id, char* name, std::size_t room) {
    const std::string file = object_of(id).file;
    if (file.empty() || file.size() >= room) return -1;
    std::memcpy(name, file.c_str(), file.size() + 1);
    return std::ssize(file);
}

int tell_kind(Id id) {
    const std::lock_guard lock(world.mutex);
    const auto found = world.objects.find(id);
    return found != world.objects.end() ? found->second.kind : -1;
}

std::int64_t count_ids(Id, unsigned) {
    const std::lock_guard lock(world.mutex);
    return std::ssize(world.objects);
}

std::int64_t list_ids(Id, unsigned, std::size_t most, Id* ids) {
    const std::lock_guard lock(world.mutex);
    std::size_t count = 0;
    for (const auto& [id, object] : world.objects)
        if (count < most) ids[count++] = id;
    return static_cast<std::int64_t>(count);
}

Id any_list(Id) { return 9; }

char* class_name(Id list_class) { return ::strdup(list_class == access_class ? "file access" : "dataset create"); }

int free_memory(void* memory) {
    std::free(memory);
    return 0;
}

int cache_config(Id, CacheConfig* config) {
    *config = {};
    config->version = 1;
    config->initial_size = config->min_size = config->max_size = 1 << 20;
    return 0;
}

int simple(Id) { return space_simple; }

int dimensions(Id, Size* lengths, Size* most) {
    lengths[0] = 4096;
    if (most != nullptr) most[0] = 4096;
    return 1;
}

std::int64_t points(Id) { return 4096; }

std::size_t element(Id) { return 8; }

int contiguous(Id) { return layout_contiguous; }

std::atomic<std::uint64_t> capabilities{0};  // of the connector

int tell_capabilities(Id, std::uint64_t* flags) {
    *flags = capabilities;
    return 0;
}

Word nothing() { return 0; }

/// All functions of a library: those above, or one that does nothing.
void* find(const void*, const char* name) {
    static const std::map<std::string, void*> known{
        {"H5Fget_name", reinterpret_cast<void*>(tell_name)},
        {"H5Fget_obj_count", reinterpret_cast<void*>(count_ids)},
        {"H5Fget_obj_ids", reinterpret_cast<void*>(list_ids)},
        {"H5Iget_type", reinterpret_cast<void*>(tell_kind)},
        {"H5Oget_info2", reinterpret_cast<void*>(tell_place)},
        {"H5Pcopy", reinterpret_cast<void*>(any_list)},
        {"H5Pcreate", reinterpret_cast<void*>(any_list)},
        {"H5Pget_class_name", reinterpret_cast<void*>(class_name)},
        {"H5free_memory", reinterpret_cast<void*>(free_memory)},
        {"H5Pget_mdc_config", reinterpret_cast<void*>(cache_config)},
        {"H5Sget_simple_extent_type", reinterpret_cast<void*>(simple)},
        {"H5Sget_simple_extent_dims", reinterpret_cast<void*>(dimensions)},
        {"H5Sget_simple_extent_npoints", reinterpret_cast<void*>(points)},
        {"H5Tget_size", reinterpret_cast<void*>(element)},
        {"H5Pget_layout", reinterpret_cast<void*>(contiguous)},
        {"H5P_CLS_FILE_CREATE_ID_g", nullptr},  // variables, not functions
        {"H5P_CLS_DATASET_XFER_ID_g", nullptr},
        {"H5P_CLS_FILE_ACCESS_ID_g", &access_class},
        {"H5P_CLS_DATASET_CREATE_ID_g", &dataset_class},
        {"H5Pget_vol_cap_flags", reinterpret_cast<void*>(tell_capabilities)},
        {"H5Pget_fapl_mpio", nullptr},
        {"H5FD_mpio_init", nullptr},
    };
    const auto found = known.find(name);
    return found != known.end() ? found->second : reinterpret_cast<void*>(nothing);
}

Word invoke(void* function, const Word* a, int count) {
    switch (count) {
        case 1:
            return reinterpret_cast<Word (*)(Word)>(function)(a[0]);
        case 3:
            return reinterpret_cast<Word (*)(Word, Word, Word)>(function)(a[0], a[1], a[2]);
        case 6:
            return reinterpret_cast<Word (*)(Word, Word, Word, Word, Word, Word)>(function)(a[0], a[1], a[2], a[3],
                                                                                            a[4], a[5]);
        default:
            return reinterpret_cast<Word (*)(Word, Word, Word, Word, Word, Word, Word)>(function)(
                a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
    }
}

/// A call of the program, as a hook makes it.
template <typename... Arguments>
Word call(const char* symbol, void* function, Arguments... values) {
    const Word arguments[] = {word_of(values)...};
    const adapters::Call made{symbol, function, 1, arguments, sizeof...(values), invoke};
    Word result = 0;
    return carry_out(made, result) ? result : invoke(function, arguments, sizeof...(values));
}

class Threads : public testing::Test {
protected:
    static std::filesystem::path folder() {
        static const std::filesystem::path made = [] {
            char name[] = "/tmp/ioweir-threads-XXXXXX";
            return std::filesystem::path(::mkdtemp(name));
        }();
        return made;
    }
    static void SetUpTestSuite() {
        policy::PlanFile plan;
        policy::FileRule rule;
        rule.match = "*";
        rule.hdf5.hold_all_metadata = true;
        rule.hdf5.learn_chunks = true;
        plan.files.push_back(rule);
        install(plan, {find, nullptr, [](const char*, const char*) { ++notes; }, nullptr}, false);
    }
    static void TearDownTestSuite() { std::filesystem::remove_all(folder()); }

    static bool marked(const std::string& path) { return std::filesystem::exists(path + ".ioweir-held"); }
    static Id open(const std::string& path) {
        return static_cast<Id>(
            call("H5Fopen", reinterpret_cast<void*>(open_file), path.c_str(), Id{flag_write}, Id{0}));
    }
    static Id create(Id file) {
        return static_cast<Id>(
            call("H5Dcreate2", reinterpret_cast<void*>(make_dataset), file, "data", Id{1}, Id{2}, Id{0}, Id{0}, Id{0}));
    }
    static void write(Id dataset) {
        call("H5Dwrite", reinterpret_cast<void*>(move_data), dataset, Id{1}, Id{0}, Id{0}, Id{0}, "");
    }
    static void close(const char* symbol, Id id) { call(symbol, reinterpret_cast<void*>(close_id), id); }
};

TEST_F(Threads, AMarkLivesAsLongAsAnyThreadHasTheFileOpen) {
    const std::string shared = folder() / "shared.h5";
    std::atomic<int> missing{0};
    const auto work = [&](int thread) {
        const std::string own = folder() / ("own" + std::to_string(thread) + ".h5");
        for (int round = 0; round < 100; ++round) {
            for (const std::string& path : {shared, own}) {
                const Id file = open(path);
                const Id dataset = create(file);
                missing += marked(path) ? 0 : 1;
                write(dataset);
                if (round % 2 == 0) close("H5Fclose", file);
                missing += marked(path) ? 0 : 1;
                close("H5Dclose", dataset);
                if (round % 2 == 1) close("H5Fclose", file);
            }
            missing += marked(own) ? 1 : 0;
        }
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 8; ++thread) threads.emplace_back(work, thread);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(missing, 0);
    EXPECT_FALSE(marked(shared));
    EXPECT_TRUE(world.objects.empty());
    EXPECT_GT(notes, 0);
}

TEST_F(Threads, AConnectorThatWorksLaterIsLeftAlone) {
    const std::string path = folder() / "later.h5";
    capabilities = works_later | 1;
    const Id file = open(path);
    EXPECT_GT(file, 0);
    EXPECT_FALSE(marked(path));
    capabilities = 1;
    const Id again = open(path);
    EXPECT_TRUE(marked(path));
    close("H5Fclose", file);
    close("H5Fclose", again);
    EXPECT_FALSE(marked(path));
}

TEST_F(Threads, OneFileUnderTwoNamesHasOneMark) {
    const std::string path = folder() / "two.h5";
    const std::string other = folder() / "." / "two.h5";
    std::ofstream(path).put('x');
    const Id one = open(path);
    const Id two = open(other);
    EXPECT_TRUE(marked(path));
    close("H5Fclose", one);
    EXPECT_TRUE(marked(path));
    close("H5Fclose", two);
    EXPECT_FALSE(marked(path));
}

/// A relative name means another file in another folder, and the program may be in a third one when it closes them.
TEST_F(Threads, FilesOfOneNameInTwoFoldersHaveAMarkEach) {
    const std::filesystem::path before = std::filesystem::current_path();
    std::vector<std::string> paths;
    std::vector<Id> files;
    for (const char* const name : {"a", "b"}) {
        std::filesystem::create_directory(folder() / name);
        std::filesystem::current_path(folder() / name);
        std::ofstream("same.h5").put('x');
        paths.push_back(folder() / name / "same.h5");
        files.push_back(open("same.h5"));
    }
    std::filesystem::current_path(before);
    const Id dataset = create(files[1]);
    EXPECT_TRUE(marked(paths[0]) && marked(paths[1]));
    close("H5Fclose", files[0]);
    EXPECT_FALSE(marked(paths[0]));
    close("H5Fclose", files[1]);
    EXPECT_TRUE(marked(paths[1]));  // for its dataset
    close("H5Dclose", dataset);
    EXPECT_FALSE(marked(paths[1]));
}

/// What is open goes on being open in the parent, whatever the child does at its end.
TEST_F(Threads, AChildThatEndsLeavesTheMarkOfItsParent) {
    const std::string path = folder() / "parent.h5";
    const Id file = open(path);
    const pid_t child = ::fork();
    if (child == 0) std::exit(0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(marked(path));
    close("H5Fclose", file);
    EXPECT_FALSE(marked(path));
}

/// What is renamed while it is open stays what it is, and the file that gets its name is another one.
TEST_F(Threads, ARenamedFileAndItsSuccessorAreTwo) {
    const std::string path = folder() / "renamed.h5";
    std::ofstream(path).put('x');
    const Id old = open(path);
    std::filesystem::rename(path, path + ".old");
    world.openings.erase(path);
    std::ofstream(path).put('x');
    const Id fresh = open(path);
    close("H5Fclose", old);
    EXPECT_TRUE(marked(path));
    close("H5Fclose", fresh);
    EXPECT_FALSE(marked(path));
}

}  // namespace
}  // namespace ioweir::hdf5
