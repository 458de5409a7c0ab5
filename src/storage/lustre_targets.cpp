#include "storage/lustre_targets.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace ioweir::storage {

// lustreapi.h. `layout` is a struct llapi_layout, which only the library looks into. Functions return -1 and errno unless said otherwise.
struct LustreApi {
    void* library = nullptr;
    int (*get_obd_count)(char* mount, int* count, int is_mdt) = nullptr;      ///< a negative errno value
    int (*lov_get_uuids)(int descriptor, void* uuids, int* count) = nullptr;  ///< a negative errno value
    void* (*layout_alloc)(unsigned stripes) = nullptr;                        ///< NULL and errno
    void (*layout_free)(void* layout) = nullptr;
    int (*layout_stripe_count_set)(void* layout, std::uint64_t count) = nullptr;
    int (*layout_stripe_size_set)(void* layout, std::uint64_t bytes) = nullptr;
    int (*layout_ost_index_set)(void* layout, int stripe, std::uint64_t index) = nullptr;
    int (*layout_file_create)(const char* path, int flags, int mode, const void* layout) = nullptr;  ///< a descriptor
    void* (*layout_get_by_path)(const char* path, std::uint32_t flags) = nullptr;                    ///< NULL and errno
    int (*layout_stripe_count_get)(const void* layout, std::uint64_t* count) = nullptr;
    int (*layout_stripe_size_get)(const void* layout, std::uint64_t* bytes) = nullptr;
    int (*layout_ost_index_get)(const void* layout, std::uint64_t stripe, std::uint64_t* index) = nullptr;

    ~LustreApi() {
        if (library != nullptr) ::dlclose(library);
    }
};

namespace {

using layout::StripeLayout;

struct Uuid {  // struct obd_uuid
    std::array<char, 40> text;
};

/// Empty, or the function that the library has not.
std::string load(LustreApi& api) {
    std::string missing;
    const auto find = [&](auto& function, const char* name) {
        void* address = ::dlsym(api.library, name);
        if (address == nullptr && missing.empty()) missing = name;
        std::memcpy(&function, &address, sizeof address);
    };
    find(api.get_obd_count, "llapi_get_obd_count");
    find(api.lov_get_uuids, "llapi_lov_get_uuids");
    find(api.layout_alloc, "llapi_layout_alloc");
    find(api.layout_free, "llapi_layout_free");
    find(api.layout_stripe_count_set, "llapi_layout_stripe_count_set");
    find(api.layout_stripe_size_set, "llapi_layout_stripe_size_set");
    find(api.layout_ost_index_set, "llapi_layout_ost_index_set");
    find(api.layout_file_create, "llapi_layout_file_create");
    find(api.layout_get_by_path, "llapi_layout_get_by_path");
    find(api.layout_stripe_count_get, "llapi_layout_stripe_count_get");
    find(api.layout_stripe_size_get, "llapi_layout_stripe_size_get");
    find(api.layout_ost_index_get, "llapi_layout_ost_index_get");
    return missing;
}

Error cannot_list(const std::string& directory, int error) {
    return {"the targets of a Lustre cannot be listed", directory + ": " + std::strerror(error < 0 ? -error : error),
            "see whether `lfs osts` can"};
}

Result<std::vector<Target>> read_targets(const LustreApi& api, const std::string& directory) {
    int count = 0;
    std::string mount = directory;  // the library wants it writable
    if (const int error = api.get_obd_count(mount.data(), &count, 0); error != 0) return cannot_list(directory, error);
    if (count < 1) return cannot_list(directory, ENODEV);
    std::vector<Uuid> uuids(static_cast<std::size_t>(count), Uuid{});
    const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return cannot_list(directory, errno);
    const int error = api.lov_get_uuids(descriptor, uuids.data(), &count);
    ::close(descriptor);
    if (error != 0) return cannot_list(directory, error);
    std::vector<Target> targets;
    for (std::size_t i = 0; i < uuids.size(); ++i) {
        std::string name(uuids[i].text.data(), ::strnlen(uuids[i].text.data(), uuids[i].text.size()));
        const std::size_t ending = name.rfind("_UUID");
        if (ending != std::string::npos) name.resize(ending);
        const bool there = !name.empty();
        targets.push_back({there ? name : "OST" + std::to_string(i), directory, 0,
                           there ? "" : "there is no OST of index " + std::to_string(i)});
    }
    return targets;
}

/// A layout of the library's that is freed in the end.
class Handle {
public:
    Handle(const LustreApi& api, void* layout) : api_(api), layout_(layout) {}
    ~Handle() {
        if (layout_ != nullptr) api_.layout_free(layout_);
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    [[nodiscard]] void* get() const { return layout_; }

private:
    const LustreApi& api_;
    void* layout_;
};

/// The target of the s-th stripe.
std::int32_t target_of_stripe(const StripeLayout& placement, std::int64_t stripe) {
    return placement.targets()[static_cast<std::size_t>((placement.start() + stripe) % placement.stripe_count())];
}

}  // namespace

LustreTargets::LustreTargets(std::vector<Target> targets, std::unique_ptr<LustreApi> api)
    : targets_(std::move(targets)), api_(std::move(api)) {}

LustreTargets::~LustreTargets() = default;

Result<std::unique_ptr<Targets>> LustreTargets::open(const std::string& directory, const std::string& library) {
    auto api = std::make_unique<LustreApi>();
    for (const char* name : {"liblustreapi.so.1", "liblustreapi.so"}) {
        api->library = ::dlopen(library.empty() ? name : library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (api->library != nullptr) break;
    }
    if (api->library == nullptr) {
        const char* why = ::dlerror();
        return Error{"a Lustre without its library", why == nullptr ? "liblustreapi.so" : why,
                     "install Lustre's client utilities, or name directories in a manifest"};
    }
    if (const std::string missing = load(*api); !missing.empty())
        return Error{"a liblustreapi that is too old", "it has no " + missing, "Lustre 2.7 or later is needed"};
    auto targets = read_targets(*api, directory);
    if (!targets) return targets.error();
    return std::unique_ptr<Targets>(new LustreTargets(targets.take(), std::move(api)));
}

Abilities LustreTargets::abilities() const { return {true, true, true, ""}; }

Opened LustreTargets::create(const std::string& path, const StripeLayout& placement, int flags, mode_t mode) {
    if (const int error = check(placement); error != 0) return {-1, error};
    const Handle layout(*api_, api_->layout_alloc(0));
    if (layout.get() == nullptr) return {-1, errno};
    const std::int64_t count = placement.stripe_count();
    if (api_->layout_stripe_count_set(layout.get(), static_cast<std::uint64_t>(count)) != 0) return {-1, errno};
    const auto bytes = static_cast<std::uint64_t>(placement.stripe_bytes());
    if (bytes > 0 && api_->layout_stripe_size_set(layout.get(), bytes) != 0) return {-1, errno};
    for (std::int64_t stripe = 0; stripe < count; ++stripe) {
        const auto index = static_cast<std::uint64_t>(target_of_stripe(placement, stripe));
        if (api_->layout_ost_index_set(layout.get(), static_cast<int>(stripe), index) != 0) return {-1, errno};
    }
    const int descriptor =
        api_->layout_file_create(path.c_str(), flags | O_CLOEXEC, static_cast<int>(mode), layout.get());
    return descriptor < 0 ? Opened{-1, errno} : Opened{descriptor, 0};
}

Result<StripeLayout> LustreTargets::placement_of(const std::string& path) {
    const auto failed = [&](int error) { return Error{"cannot tell where a file lies", path, std::strerror(error)}; };
    const Handle layout(*api_, api_->layout_get_by_path(path.c_str(), 0));
    if (layout.get() == nullptr) return failed(errno);
    std::uint64_t count = 0, bytes = 0;
    if (api_->layout_stripe_count_get(layout.get(), &count) != 0) return failed(errno);
    if (api_->layout_stripe_size_get(layout.get(), &bytes) != 0) return failed(errno);
    if (count < 1 || count > targets_.size())
        return Error{"a file without a layout that could be read", path,
                     "it has " + std::to_string(count) + " stripes"};
    std::vector<std::int32_t> targets;
    for (std::uint64_t stripe = 0; stripe < count; ++stripe) {
        std::uint64_t index = 0;
        if (api_->layout_ost_index_get(layout.get(), stripe, &index) != 0) return failed(errno);
        if (index >= targets_.size())
            return Error{"a file on a target that the Lustre did not list", path, "OST index " + std::to_string(index)};
        targets.push_back(static_cast<std::int32_t>(index));
    }
    return StripeLayout::make(static_cast<std::int64_t>(bytes), std::move(targets));
}

}  // namespace ioweir::storage
