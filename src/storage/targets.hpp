// Targets: the places of a storage system whose speed is independent of each other (directories on devices of their own, Lustre's OSTs,
// pools of a CephFS), and new files on chosen ones of them. One interface, a driver for each system.
// What does not live here: how fast targets are (probe), which ones to use (probe/selection.hpp), what a manifest says (manifest.hpp).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "base/result.hpp"
#include "layout/core/stripe_layout.hpp"
#include "storage/backend.hpp"
#include "storage/throttle.hpp"

namespace ioweir::storage {

/// Targets are numbered from 0 in the order in which their storage lists them; these numbers are what a StripeLayout names.
struct Target {
    std::string name;       ///< as the storage calls it: "t0", "lustre-OST0004", a pool's name
    std::string directory;  ///< where its files are; for Lustre and CephFS the one that was asked about
    std::int64_t rate = 0;  ///< bytes a second of its token bucket as configured; 0: none, it is as fast as its device
    std::string unusable;   ///< why nothing can be placed on it; empty: it can
};

/// What a driver can do, for those who have to choose another way otherwise.
struct Abilities {
    bool stripes = false;    ///< one file over several targets of one's choice
    bool sets_size = false;  ///< of stripes (or of a CephFS's objects)
    bool reads_back = true;  ///< placement_of() tells all targets of a file
    std::string limits;      ///< what it cannot do and what to do instead, in a sentence; empty: nothing is missing
    bool directories =
        false;  ///< each target is a directory: what is made in it lies on it, and the storage need not be told
};

/// Thread safe, except that nothing may be called while it is destroyed.
class Targets {
public:
    virtual ~Targets() = default;
    Targets() = default;
    Targets(const Targets&) = delete;
    Targets& operator=(const Targets&) = delete;

    /// "directories", "cephfs" or "lustre".
    [[nodiscard]] virtual const char* kind() const = 0;
    [[nodiscard]] virtual const std::vector<Target>& list() const = 0;
    [[nodiscard]] virtual Abilities abilities() const = 0;

    /// Where the file lies that create() makes: `path`, or, where targets are directories, its last component in the target's directory.
    [[nodiscard]] virtual std::string path_on(const std::string& path, const layout::StripeLayout& placement) const;
    /// Makes a new file on the target or targets of `placement` (stripe_bytes 0 leaves the size of stripes to the storage). `flags` as in
    /// open(2); O_CREAT, O_EXCL and O_CLOEXEC are added. EEXIST if it is there already; EINVAL for a target that does not exist or cannot
    /// be used; ENOTSUP for what the driver cannot do. Whatever the error, no file is left.
    [[nodiscard]] virtual Opened create(const std::string& path, const layout::StripeLayout& placement, int flags,
                                        mode_t mode) = 0;
    /// On which targets a file lies that is there, and in what stripes.
    [[nodiscard]] virtual Result<layout::StripeLayout> placement_of(const std::string& path) = 0;
    /// A file of one target that has no name: it goes when it is closed, or its process dies. Where the storage cannot make such a file
    /// it is made with a name, which is removed at once.
    [[nodiscard]] virtual Opened create_unnamed(std::int32_t target, int flags);

    /// Waits until a target's token bucket has let `bytes` through, which have just been moved; at once where it has none.
    virtual void pace(std::int32_t target, std::int64_t bytes, ThrottleClock& clock);
    /// Its token bucket's rate at this moment; 0: it has none.
    [[nodiscard]] virtual std::int64_t rate(std::int32_t target) const;

protected:
    /// Whether a placement names usable targets, and no more of them than the driver can stripe over: 0, EINVAL or ENOTSUP.
    [[nodiscard]] int check(const layout::StripeLayout& placement) const;
    /// Makes a new file and has `place` tell the storage where its bytes lie: 0 or an errno value, after which no file is left.
    [[nodiscard]] static Opened create_placed(const std::string& path, int flags, mode_t mode,
                                              FunctionRef<int(int descriptor)> place);
};

/// The targets in effect at a path, there or not: those of the nearest manifest at or above it (manifest.hpp), else those of the Lustre
/// it is on.
[[nodiscard]] Result<std::unique_ptr<Targets>> find_targets(const std::string& path);

/// "token bucket: 25 MiB and 4.77 MiB a second" for results that are measured on such targets; empty where none has a rate.
[[nodiscard]] std::string describe_rates(const Targets& targets);

}  // namespace ioweir::storage
