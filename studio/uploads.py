"""Files of a request: held in memory, and of too many bytes no more than it takes to know that they are too many."""

from io import BytesIO
from typing import Any

from django.core.files.uploadedfile import InMemoryUploadedFile
from django.core.files.uploadhandler import FileUploadHandler

from engine.tools.package import LARGEST_ARCHIVE

LARGEST_DOCUMENT = 20 * 1024 * 1024  # bytes of a session that is imported
LARGEST_FILE = max(LARGEST_ARCHIVE, LARGEST_DOCUMENT)


class BoundedUploadHandler(FileUploadHandler):
    """Cuts all files of a request together at one byte more than the largest one that is taken.

    So whoever reads the file finds it too large and says so in words; nothing is refused before that.
    """

    def __init__(self, request: Any = None) -> None:
        super().__init__(request)
        self._room = LARGEST_FILE + 1
        self._file = BytesIO()

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self._file = BytesIO()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:  # noqa: ARG002
        self._room -= self._file.write(raw_data[: self._room])

    def file_complete(self, file_size: int) -> InMemoryUploadedFile:  # noqa: ARG002
        size = self._file.tell()
        self._file.seek(0)
        return InMemoryUploadedFile(
            file=self._file,
            field_name=self.field_name,
            name=self.file_name,
            content_type=self.content_type,
            size=size,
            charset=self.charset,
            content_type_extra=self.content_type_extra,
        )
