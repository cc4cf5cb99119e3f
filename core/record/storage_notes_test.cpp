#include "core/record/storage_notes.h"

#include <gtest/gtest.h>

#include <memory>

namespace sherlorch {
namespace {

constexpr StorageKey address(int i) { return 0x7f0000001000 + static_cast<StorageKey>(i) * 80; }

class StorageNotesTest : public testing::Test {
 protected:
  // On the heap: 34 KiB.
  std::unique_ptr<StorageNotes> notes_ = std::make_unique<StorageNotes>();
};

TEST_F(StorageNotesTest, ANewOneHasNothing) {
  EXPECT_FALSE(notes_->has(address(0), StorageNotes::kKnown));
  EXPECT_FALSE(notes_->has(address(0), StorageNotes::kWritten));
}

TEST_F(StorageNotesTest, BothNotesAreKeptApart) {
  notes_->add(address(1), StorageNotes::kWritten);
  EXPECT_TRUE(notes_->has(address(1), StorageNotes::kWritten));
  EXPECT_FALSE(notes_->has(address(1), StorageNotes::kKnown));
  EXPECT_FALSE(notes_->has(address(1), StorageNotes::kKnown | StorageNotes::kWritten));
  notes_->add(address(1), StorageNotes::kKnown);
  EXPECT_TRUE(notes_->has(address(1), StorageNotes::kKnown | StorageNotes::kWritten));
  notes_->remove(address(1), StorageNotes::kKnown);
  EXPECT_TRUE(notes_->has(address(1), StorageNotes::kWritten));
  EXPECT_FALSE(notes_->has(address(1), StorageNotes::kKnown));
}

TEST_F(StorageNotesTest, ClearForgetsAFewAndMany) {
  for (const int count : {1, 100, 5000}) {
    for (int i = 0; i < count; ++i) notes_->add(address(i), StorageNotes::kKnown | StorageNotes::kWritten);
    for (int i = 0; i < count; ++i) ASSERT_TRUE(notes_->has(address(i), StorageNotes::kKnown)) << count << " " << i;
    notes_->clear();
    for (int i = 0; i < count; ++i) {
      ASSERT_FALSE(notes_->has(address(i), StorageNotes::kKnown)) << count << " " << i;
      ASSERT_FALSE(notes_->has(address(i), StorageNotes::kWritten)) << count << " " << i;
    }
  }
}

TEST_F(StorageNotesTest, FewStoragesShareTheirNotes) {
  // 17 bits of a hash: of 1,000 others some eight share those of one of 1,000.
  for (int i = 0; i < 1000; ++i) notes_->add(address(i), StorageNotes::kKnown);
  int shared = 0;
  for (int i = 1000; i < 2000; ++i) shared += notes_->has(address(i), StorageNotes::kKnown) ? 1 : 0;
  EXPECT_LE(shared, 30);
}

}  // namespace
}  // namespace sherlorch
