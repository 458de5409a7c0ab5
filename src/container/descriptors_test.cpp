// A container whose descriptors the program has closed, so that its own files have their numbers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "container/container.hpp"
#include "container/merge.hpp"
#include "container/testing.hpp"

namespace ioweir::container {
namespace {

namespace fs = std::filesystem;

/// Of all that this process has open in a container's directory.
std::vector<int> descriptors_in(const Place& place) {
    const std::string beginning = fs::canonical(place.directory.path).string();
    std::vector<int> found;
    for (int fd = 3; fd < 1024; ++fd) {
        std::error_code none;
        const std::string to = fs::read_symlink("/proc/self/fd/" + std::to_string(fd), none).string();
        if (!none && to.starts_with(beginning)) found.push_back(fd);
    }
    return found;
}

/// Closes all of them; new files of the program's own have their numbers.
std::vector<int> take_descriptors_of(const Place& place) {
    const std::vector<int> taken = descriptors_in(place);
    for (const int fd : taken) {
        const std::string name = place.folder + "/own." + std::to_string(fd);
        const int own = ::open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        EXPECT_EQ(::dup2(own, fd), fd);
        EXPECT_EQ(::close(own), 0);
    }
    return taken;
}

void expect_untouched(const Place& place, const std::vector<int>& taken) {
    for (const int fd : taken) {
        struct stat here{}, own{};
        const std::string name = place.folder + "/own." + std::to_string(fd);
        ASSERT_EQ(::stat(name.c_str(), &own), 0);
        ASSERT_EQ(::fstat(fd, &here), 0) << "closed";
        EXPECT_EQ(here.st_ino, own.st_ino);
        EXPECT_EQ(own.st_size, 0);
        EXPECT_EQ(::close(fd), 0);
    }
}

TEST(Descriptors, NoByteGoesToAFileThatTookADescriptorsNumber) {
    for (const Shape& shape : {Shape{1}, Shape{0, Shape::Kind::log}, Shape{3, Shape::Kind::subfiles, 64}}) {
        Place place(shape);
        const std::uint32_t generation = place.begin();
        const Role role{true, true, 0, 0, generation};
        auto container = place.open(role);
        const std::string before(100, 'a'), after(100, 'b');
        ASSERT_EQ(container->write_at(-1, before.data(), 100, 0).error, 0);
        ASSERT_EQ(container->flush(false), 0);
        ASSERT_EQ(read_all(*container, 100), before);
        const std::vector<int> taken = take_descriptors_of(place);
        ASSERT_GE(taken.size(), 3U);
        container->find_again();
        ASSERT_EQ(container->write_at(-1, after.data(), 100, 100).error, 0);
        EXPECT_EQ(container->flush(true), 0);
        EXPECT_EQ(read_all(*container, 200), before + after);
        Left left;
        EXPECT_EQ(container->leave(role, &left), 0);
        container.reset();
        EXPECT_EQ(place.end(generation, left), 0);
        expect_untouched(place, taken);
        EXPECT_TRUE(describe(place.path).value().problems.empty());
        EXPECT_LE(descriptors_in(place).size(), 1U) << "the folder's";
    }
}

TEST(Descriptors, WhereADescriptorsFileIsNotThereAnyMoreEachCallFails) {
    Place place(Shape{0, Shape::Kind::log});
    const std::uint32_t generation = place.begin();
    const Role role{false, true, 0, 0, generation};
    auto container = place.open(role);
    const std::string text(100, 'a');
    ASSERT_EQ(container->write_at(-1, text.data(), 100, 0).error, 0);
    ASSERT_EQ(container->flush(false), 0);
    const std::vector<int> taken = take_descriptors_of(place);
    const std::string data = place.directory.data(log_source(generation, 0));
    const std::string index = place.directory.index(log_source(generation, 0), generation, 0);
    fs::rename(data, place.folder + "/data");
    fs::rename(index, place.folder + "/index");
    spill(data, "another");
    spill(index, "another");
    container->find_again();
    EXPECT_EQ(container->write_at(-1, text.data(), 100, 100).error, EBADF);
    EXPECT_EQ(container->flush(true), EBADF);
    container.reset();
    expect_untouched(place, taken);
    EXPECT_EQ(slurp(data), "another");
    EXPECT_EQ(slurp(index), "another");
}

}  // namespace
}  // namespace ioweir::container
