// Images as files: an OCI layout, or what `docker save` writes; in a directory or in a tar archive.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "image/image_plan.h"
#include "image/unpack.h"

namespace atl::image {

// The files that an image is made of, by name.
class ImageFiles {
 public:
  virtual ~ImageFiles() = default;
  // NotFound where there is none; the range is valid as long as this object.
  virtual Result<Range> find(const std::string& name) = 0;
};

// Opens a name that the layout of an image knows: "index.json", "blobs/sha256/HEX". Without
// following links.
Result<UniqueFd> open_layout_file(int directory, const std::string& name);

class DirectoryFiles final : public ImageFiles {
 public:
  using Open = std::function<Result<UniqueFd>(const std::string& name)>;
  explicit DirectoryFiles(Open open) : open_(std::move(open)) {}
  Result<Range> find(const std::string& name) override;

 private:
  Open open_;
  std::map<std::string, UniqueFd> files_;
};

// The members of a plain tar archive, which is read once, headers only.
class TarFiles final : public ImageFiles {
 public:
  // NotFound where there are more than an image has.
  static Result<TarFiles> scan(int archive);
  Result<Range> find(const std::string& name) override;

 private:
  struct Member {
    uint64_t offset = 0;
    uint64_t size = 0;
    std::string link;  // the member that it stands for
  };
  explicit TarFiles(int archive) : archive_(archive) {}

  int archive_;
  std::map<std::string, Member> members_;
};

// Whether a tar archive that begins so (a few kilobytes) could hold an image; to be settled by
// looking for its index. Root filesystems hardly ever begin like that.
bool may_be_image(std::string_view beginning);

// NotFound where the files are not those of an image.
Result<ImagePlan> plan_layout(ImageFiles& files, PlanOrigin origin);

}  // namespace atl::image
