(** * Rows to compute with

    Records as the reference engine has them: rows of nullable integers, in the
    canonical order, column by column, null first.  With them [Compute] runs
    the meanings of [Plans], [Persons] and [Queries], so that a test can compare
    them with the code's on the same rows.

    A cell is [None] for null; true is 1 and false is 0.  A table prints as
    [1,_;0,2]: cells separated by commas, rows by semicolons, null as [_]. *)

Require Import List Arith ZArith Bool String Lia.
Require Import Fpinq.Bags Fpinq.Plans Fpinq.Compute.
Import ListNotations.

(** ** The canonical order *)

#[global] Instance ordered_Z : Ordered Z.
Proof.
  refine {| leb := Z.leb |}.
  - intros x y. rewrite !Z.leb_le. lia.
  - intros x y z. rewrite !Z.leb_le. lia.
  - intros x y. rewrite !Z.leb_le. lia.
Defined.

Fixpoint leb_list {A} {O : Ordered A} (xs ys : list A) : bool :=
  match xs, ys with
  | [], _ => true
  | _ :: _, [] => false
  | x :: xs, y :: ys => if eq_dec x y then leb_list xs ys else leb x y
  end.

#[global] Instance ordered_list {A} {O : Ordered A} : Ordered (list A).
Proof.
  refine {| leb := leb_list |}.
  - induction x as [|x xs IH]; intros [|y ys]; simpl; auto. destruct (eq_dec x y), (eq_dec y x); subst; try congruence; auto.
    apply leb_total.
  - induction x as [|x xs IH]; intros [|y ys] [|z zs]; simpl; auto; try discriminate.
    destruct (eq_dec x y) as [E|E], (eq_dec y z) as [F|F], (eq_dec x z) as [G|G]; try congruence.
    + apply IH.
    + subst z. intros H K. exfalso. apply E, leb_antisym; assumption.
    + intros H K. exact (leb_trans x y z H K).
  - induction x as [|x xs IH]; intros [|y ys]; simpl; auto; try discriminate.
    destruct (eq_dec x y) as [E|E], (eq_dec y x) as [F|F]; try congruence.
    + intros H K. f_equal; auto.
    + intros H K. exfalso. apply E, leb_antisym; assumption.
Defined.

Definition cell := option Z.
Definition row := list cell.
Definition column (i : nat) (r : row) : cell := nth i r None.

(** ** A few operators of the row language *)

Definition lift (f : Z -> Z -> Z) (x y : cell) : cell := match x, y with Some x, Some y => Some (f x y) | _, _ => None end.
Definition equal := lift (fun x y => if Z.eqb x y then 1 else 0)%Z.
Definition add := lift Z.add.
Definition multiply := lift Z.mul.
Definition floor_divide := lift Z.div.

Definition holds (x : cell) : bool := match x with Some 1%Z => true | _ => false end.
Definition same (x y : cell) : bool := if eq_dec x y then true else false.

(** A function given by its values. *)
Fixpoint lookup (table : list (row * list row)) (r : row) : list row :=
  match table with [] => [] | (x, ys) :: table => if eq_dec x r then ys else lookup table r end.

(** The key of a join: none if a part of it is null. *)
Fixpoint present (r : row) : option row :=
  match r with
  | [] => Some []
  | None :: _ => None
  | x :: r => option_map (cons x) (present r)
  end.

Definition has_null (r : row) : bool := existsb (fun x => match x with None => true | Some _ => false end) r.

(** A key that tells the record. *)
Definition telling (n : nat) (f : row -> row) (H : forall r, List.length (f r) = n) :
  {key : row -> row | forall x y, key x = key y -> x = y}.
Proof.
  exists (fun r => f r ++ r)%list. intros x y E. apply (f_equal (skipn n)) in E.
  rewrite <- (H x), skipn_app, skipn_all, Nat.sub_diag, (H x), <- (H y), skipn_app, skipn_all, Nat.sub_diag in E.
  exact E.
Defined.

(** ** Aggregates of a group's members *)

Definition present_cells (f : row -> cell) (M : list row) : list Z :=
  flat_map (fun r => match f r with Some x => [x] | None => [] end) M.
Definition counted (M : list row) : cell := Some (Z.of_nat (List.length M)).
Definition summed (lo hi : Z) (f : row -> cell) (M : list row) : cell :=
  Some (fold_right Z.add 0%Z (map (fun x => Z.max lo (Z.min hi x)) (present_cells f M))).
Definition best (choose : Z -> Z -> Z) (f : row -> cell) (M : list row) : cell :=
  match present_cells f M with [] => None | x :: xs => Some (fold_right choose x xs) end.

(** ** Printing *)

Open Scope string_scope.
Definition show_cell (x : cell) : string := match x with Some z => show_Z z | None => "_" end.
Definition show_rows (T : list row) : string := String.concat ";" (map (fun r => String.concat "," (map show_cell r)) T).
Definition show_tables (Ts : list (list row)) : string := String.concat "|" (map show_rows Ts).
