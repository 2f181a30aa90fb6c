"""What a teacher does with students: admit them, take them out, and put two that are one person together."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from core.classroom import folders, measured, records
from core.classroom.classes import Classes, require_place
from core.classroom.records import Class, Student
from core.errors import DamagedFile, NotAllowed
from core.files import atomic


class Roster:
    """The students of one class, for its teacher."""

    def __init__(self, classes: Classes, class_: Class) -> None:
        self.classes = classes
        self.class_ = class_

    def admit(self, students: Sequence[Student]) -> int:
        """Let students who wait take part; how many did wait.

        Raises:
            NotAllowed: the class is full; those before are in.
            StoreError: the folder cannot be written.
        """
        waiting = [student for student in students if student.waiting and not _unknown(student)]
        for student in waiting:
            require_place(self.classes.students(self.class_), waiting=False)
            self._admit(student)
        return len(waiting)

    def remove(self, students: Sequence[Student]) -> None:
        """Take students out of the class with all of theirs; raises StoreError if one stays; those before are out."""
        for student in students:
            with folders.writing(self.classes.folder):
                folders.remove(self.classes.place(self.class_, student.id))

    def merge(self, gone: Student, kept: Student) -> None:
        """Give one student's rows to another, e.g. of somebody who lost their link and joined again; then remove them.

        What the other expects stays, unless it is nothing. Whoever of the two was admitted, the other is then.
        An interruption leaves both students, and each row with one of them; doing it again finishes it.

        Raises:
            NotAllowed: they are one, a file of theirs is damaged, or they have more rows than one student may have.
            StoreError: the folder cannot be written.
        """
        if gone.id == kept.id:
            raise NotAllowed("Choose two students to put together.")
        if _unknown(kept):
            raise NotAllowed(f"Nothing can be given to {kept.nickname}: {kept.fault}")
        mine = self.classes.store(self.class_, kept).folder
        files = [file for folder in self._results_of(gone) for file in measured.files(folder)]
        measured.require_room([*files, *measured.files(mine)])
        with folders.writing(self.classes.folder):
            for file in files:
                file.rename(mine / file.name)
            atomic.flush_folder(mine)
            if kept.prediction is None and gone.prediction is not None:
                records.write_prediction(self.classes.place(self.class_, kept.id), gone.prediction)
        if kept.waiting and not gone.waiting:
            self._admit(kept)
        self.remove([gone])

    def _results_of(self, student: Student) -> list[Path]:
        """The folder of a student's results; every one that may be, where it is not known which is."""
        if not _unknown(student):
            return [self.classes.store(self.class_, student).folder]
        return sorted(self.classes.place(self.class_, student.id).glob(f"{records.RESULTS}*"))

    def _admit(self, student: Student) -> None:
        folder = self.classes.place(self.class_, student.id)
        with folders.writing(self.classes.folder), contextlib.suppress(DamagedFile):
            if kept := records.token_hash(folder):
                records.write_student(folder, replace(student, waiting=False), kept)


def _unknown(student: Student) -> bool:
    """Whether nobody knows any more who a student is."""
    return bool(student.fault) and not student.joined_at
