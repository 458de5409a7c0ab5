// Stands in for liblustreapi in tests: six OSTs, of which number 4 is not there. Records the calls, and remembers the layouts of the
// files that it makes, which are ordinary ones.
#include <fcntl.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr int ost_count = 6;
constexpr int missing_ost = 4;

struct Layout {
    std::uint64_t count = 1;
    std::uint64_t bytes = 1 << 20;
    std::map<int, std::uint64_t> index_of_stripe;
};

std::string& calls() {
    static std::string text;
    return text;
}
std::map<std::string, Layout>& files() {
    static std::map<std::string, Layout> all;
    return all;
}
int& alive() {
    static int count = 0;
    return count;
}
Layout& of(void* layout) { return *static_cast<Layout*>(layout); }
const Layout& of(const void* layout) { return *static_cast<const Layout*>(layout); }

}  // namespace

extern "C" {

const char* fake_calls() { return calls().c_str(); }
void fake_forget_calls() { calls().clear(); }
int fake_layouts_alive() { return alive(); }

int llapi_get_obd_count(char*, int* count, int is_mdt) {
    if (is_mdt != 0) return -EINVAL;
    *count = ost_count;
    return 0;
}
int llapi_lov_get_uuids(int descriptor, void* uuids, int* count) {
    if (descriptor < 0) return -EBADF;
    for (int i = 0; i < *count && i < ost_count; ++i) {
        char* text = static_cast<char*>(uuids) + 40 * i;
        if (i != missing_ost) std::strcpy(text, ("lab-OST000" + std::to_string(i) + "_UUID").c_str());
    }
    *count = ost_count;
    return 0;
}
void* llapi_layout_alloc(unsigned) {
    ++alive();
    return new Layout;
}
void llapi_layout_free(void* layout) {
    --alive();
    delete static_cast<Layout*>(layout);
}
int llapi_layout_stripe_count_set(void* layout, std::uint64_t count) {
    calls() += "count " + std::to_string(count) + "\n";
    of(layout).count = count;
    return 0;
}
int llapi_layout_stripe_size_set(void* layout, std::uint64_t bytes) {
    calls() += "size " + std::to_string(bytes) + "\n";
    if (bytes % 65536 != 0) {  // as Lustre wants it
        errno = EINVAL;
        return -1;
    }
    of(layout).bytes = bytes;
    return 0;
}
int llapi_layout_ost_index_set(void* layout, int stripe, std::uint64_t index) {
    calls() += "stripe " + std::to_string(stripe) + " on " + std::to_string(index) + "\n";
    of(layout).index_of_stripe[stripe] = index;
    return 0;
}
int llapi_layout_file_create(const char* path, int flags, int mode, const void* layout) {
    calls() += "create\n";
    const int descriptor = ::open(path, flags | O_CREAT | O_EXCL, mode);
    if (descriptor >= 0) files()[path] = of(layout);
    return descriptor;
}
void* llapi_layout_get_by_path(const char* path, std::uint32_t) {
    const auto found = files().find(path);
    if (found == files().end()) {
        errno = ENODATA;
        return nullptr;
    }
    ++alive();
    return new Layout(found->second);
}
int llapi_layout_stripe_count_get(const void* layout, std::uint64_t* count) {
    *count = of(layout).count;
    return 0;
}
int llapi_layout_stripe_size_get(const void* layout, std::uint64_t* bytes) {
    *bytes = of(layout).bytes;
    return 0;
}
int llapi_layout_ost_index_get(const void* layout, std::uint64_t stripe, std::uint64_t* index) {
    const auto found = of(layout).index_of_stripe.find(static_cast<int>(stripe));
    if (found == of(layout).index_of_stripe.end()) {
        errno = EINVAL;
        return -1;
    }
    *index = found->second;
    return 0;
}
}
