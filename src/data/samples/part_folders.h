// Folders named train, val, test and similar, and the grouping of images that must stay in one
// part.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// The part that a folder's name means, in any case: train or training; val, valid, validation
/// or dev; test or testing. The name may also have numbers, single letters and words for the
/// content of any part: train_images, TestSet, val2017, images_train. trainval is training.
std::optional<Split> part_named(const std::string& folder_name);

/// Sub-folders that are parts; "" if there is none.
struct PartFolders {
  std::string train, validation, test;
  std::vector<std::string> beside;  ///< sub-folders that are not parts
  bool by_words = false;            ///< some names contain further words
  bool any() const { return !train.empty(); }
  /// "train_images (training), test_images (test)".
  std::string text() const;
};
/// Finds the part folders among a folder's sub-folders. There are none unless one is for training
/// and another for validation or test. Names with further words are parts only if they differ in
/// the part's word alone, as mnist_train and mnist_test do. Throws FormatError, beginning with
/// `folder`, for two folders of one part, and if names of parts would become classes.
PartFolders part_folders(const std::string& folder, const std::vector<std::string>& sub_folders);

/// "patient3" of "photos/patient3_017.jpg": a file's name up to its last '_', '-', ' ' or '.'
/// before the ending; the whole name if there is none.
std::string name_prefix(const std::string& path);

/// The group of a file by a rule: "prefix", or "folder", the folder of the file; a file without
/// a folder is its own group.
std::string group_by_rule(const std::string& path, const std::string& folder,
                          const std::string& rule);
/// Throws ValueError, beginning with `what`, unless the rule is "prefix", "folder" or "".
void check_group_rule(const std::string& rule, const std::string& what);

}  // namespace tenon::data
