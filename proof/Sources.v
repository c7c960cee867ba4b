(** * Sources and accounts

    [model/accounts.py] in Coq.  A source is a root data set or one part of one
    partition.  Sources are numbered in the order they come to be: the roots
    are 0 .. roots-1, and a partition takes the next free numbers for its parts.
    A table's sensitivity is a vector over sources.

    Everything here is public: the accounts depend on the program and on the
    answers it was given, never on the data. *)

Require Import Reals Lra Lia List Arith.
Import ListNotations.
Open Scope R_scope.

(** ** Vectors over sources *)

Definition vector := nat -> R.

(** f 0 * d 0 + ... + f (n-1) * d (n-1) *)
Fixpoint dot (n : nat) (f d : vector) : R := match n with O => 0 | S m => dot m f d + f m * d m end.

(** The same over the sources lo .. lo+k-1. *)
Fixpoint segment (lo k : nat) (f d : vector) : R :=
  match k with O => 0 | S m => segment lo m f d + f (lo + m)%nat * d (lo + m)%nat end.

Lemma dot_ext n f g d e : (forall x, (x < n)%nat -> f x = g x /\ d x = e x) -> dot n f d = dot n g e.
Proof. induction n; simpl; intros H; auto. destruct (H n) as [-> ->]; auto. rewrite IHn; auto. Qed.

Lemma segment_ext lo k f g d e :
  (forall i, (i < k)%nat -> f (lo + i)%nat = g (lo + i)%nat /\ d (lo + i)%nat = e (lo + i)%nat) ->
  segment lo k f d = segment lo k g e.
Proof. induction k; simpl; intros H; auto. destruct (H k) as [-> ->]; auto. rewrite IHk; auto. Qed.

Lemma dot_linear n f g a d : dot n (fun x => f x + g x * a) d = dot n f d + a * dot n g d.
Proof. induction n; simpl; [ring|]. rewrite IHn. ring. Qed.

Lemma dot_split k lo f d : dot (lo + k) f d = dot lo f d + segment lo k f d.
Proof. induction k; simpl; [rewrite Nat.add_0_r; ring|]. rewrite Nat.add_succ_r. simpl. rewrite IHk. ring. Qed.

Lemma dot_nonneg n f d : (forall x, 0 <= f x) -> (forall x, 0 <= d x) -> 0 <= dot n f d.
Proof. intros. induction n; simpl; [lra|]. apply Rplus_le_le_0_compat; auto using Rmult_le_pos. Qed.

Lemma dot_mono n f g d : (forall x, (x < n)%nat -> f x <= g x) -> (forall x, 0 <= d x) -> dot n f d <= dot n g d.
Proof. intros H Hd. induction n; simpl; [lra|]. apply Rplus_le_compat; auto. apply Rmult_le_compat_r; auto. Qed.

Lemma dot_zero n d : dot n (fun _ => 0) d = 0.
Proof. induction n; simpl; auto. rewrite IHn. ring. Qed.

Lemma dot_public n f d : (forall x, (x < n)%nat -> f x = 0) -> dot n f d = 0.
Proof. intros H. rewrite (dot_ext n f (fun _ => 0) d d); auto using dot_zero. Qed.

Lemma segment_zero lo k f d : (forall x, (lo <= x)%nat -> f x = 0) -> segment lo k f d = 0.
Proof. intros H. induction k; simpl; auto. rewrite IHk, (H (lo + k)%nat); [ring|lia]. Qed.

Lemma dot_support n lo f d : (lo <= n)%nat -> (forall x, (lo <= x)%nat -> f x = 0) -> dot n f d = dot lo f d.
Proof. intros H Hz. replace n with (lo + (n - lo))%nat by lia. rewrite dot_split, segment_zero; auto. ring. Qed.

(** The vector of a source itself. *)
Definition unit (x : nat) : vector := fun y => if Nat.eqb y x then 1 else 0.

Lemma unit_nonneg x y : 0 <= unit x y.
Proof. unfold unit. destruct (Nat.eqb y x); lra. Qed.

Lemma unit_other x y : y <> x -> unit x y = 0.
Proof. unfold unit. destruct (Nat.eqb_spec y x); [contradiction|auto]. Qed.

Lemma unit_self x : unit x x = 1.
Proof. unfold unit. rewrite Nat.eqb_refl. reflexivity. Qed.

Lemma dot_unit n x d : (x < n)%nat -> dot n (unit x) d = d x.
Proof.
  intros H. rewrite (dot_support n (S x)); [|lia|intros; apply unit_other; lia].
  simpl. rewrite unit_self, (dot_public x); [ring|]. intros. apply unit_other. lia.
Qed.

(** ** Combining sensitivities

    A transformation with constants c_i on tables with vectors v_i gives the
    vector Σ c_i * v_i, where infinity times a public table is 0.  [None]: it
    has no bound, or not that many arguments. *)

Fixpoint public (n : nat) (v : vector) : bool :=
  match n with O => true | S m => if Req_EM_T (v m) 0 then public m v else false end.

Lemma public_zero n v : public n v = true -> forall x, (x < n)%nat -> v x = 0.
Proof.
  induction n; simpl; intros H x Hx; [lia|]. destruct (Req_EM_T (v n) 0); [|discriminate].
  destruct (Nat.eq_dec x n); [subst; auto|apply IHn; auto; lia].
Qed.

Fixpoint combine (n : nat) (cs : list (option nat)) (vs : list vector) : option vector :=
  match cs, vs with
  | [], [] => Some (fun _ => 0)
  | c :: cs, v :: vs =>
      match combine n cs vs, c with
      | Some w, Some c => Some (fun x => w x + v x * INR c)
      | Some w, None => if public n v then Some w else None
      | None, _ => None
      end
  | _, _ => None
  end.

Lemma combine_nonneg n cs : forall vs w, combine n cs vs = Some w ->
  (forall v, In v vs -> forall x, 0 <= v x) -> forall x, 0 <= w x.
Proof.
  induction cs as [|c cs IH]; intros [|v vs] w H Hv x; simpl in H; try discriminate.
  - injection H as <-. lra.
  - destruct (combine n cs vs) as [u|] eqn:E; [|discriminate].
    assert (Hu : 0 <= u x) by (apply (IH vs u E); intros; apply Hv; simpl; auto).
    destruct c as [c|].
    + injection H as <-. apply Rplus_le_le_0_compat; auto. apply Rmult_le_pos; [apply Hv; simpl; auto|apply pos_INR].
    + destruct (public n v); [|discriminate]. injection H as <-. exact Hu.
Qed.

Lemma combine_support n cs : forall vs w, combine n cs vs = Some w ->
  forall x, (forall v, In v vs -> v x = 0) -> w x = 0.
Proof.
  induction cs as [|c cs IH]; intros [|v vs] w H x Hv; simpl in H; try discriminate.
  - injection H as <-. reflexivity.
  - destruct (combine n cs vs) as [u|] eqn:E; [|discriminate].
    assert (Hu : u x = 0) by (apply (IH vs u E); intros; apply Hv; simpl; auto).
    destruct c as [c|].
    + injection H as <-. rewrite Hu, (Hv v); simpl; auto. ring.
    + destruct (public n v); [|discriminate]. injection H as <-. exact Hu.
Qed.

(** ** Accounts *)

(** A partition: its parts are the sources first .. first+parts-1; [sensitivity]
    is the vector c_π of the table that was partitioned; [maximum] is M_π. *)
Record Partition := { first : nat; parts : nat; sensitivity : vector; maximum : R }.

(** [counters] holds C_s; [direct] what queries charged to s by themselves;
    [partitions] the newest first. *)
Record Accounts := { sources : nat; counters : vector; direct : vector; partitions : list Partition }.

Definition opening (roots : nat) : Accounts :=
  {| sources := roots; counters := fun _ => 0; direct := fun _ => 0; partitions := [] |}.

(** The largest of m and the counters of the sources lo .. lo+k-1. *)
Fixpoint largest (C : vector) (lo k : nat) (m : R) : R :=
  match k with O => m | S j => Rmax (C (lo + j)%nat) (largest C lo j m) end.

(** From the newest partition to the oldest: when the maximum of its parts has
    grown, the table that was partitioned pays the growth. *)
Fixpoint settle (ps : list Partition) (C : vector) : list Partition * vector :=
  match ps with
  | [] => ([], C)
  | p :: ps =>
      let M := largest C (first p) (parts p) (maximum p) in
      let (qs, C') := settle ps (fun x => C x + sensitivity p x * (M - maximum p)) in
      ({| first := first p; parts := parts p; sensitivity := sensitivity p; maximum := M |} :: qs, C')
  end.

(** A query at e on a table with vector v. *)
Definition charge (A : Accounts) (v : vector) (e : R) : Accounts :=
  let (ps, C) := settle (partitions A) (fun x => counters A x + v x * e) in
  {| sources := sources A; counters := C; direct := fun x => direct A x + v x * e; partitions := ps |}.

(** Every root within its budget. *)
Fixpoint fits (roots : nat) (budget : vector) (A : Accounts) : bool :=
  match roots with
  | O => true
  | S x => if Rle_dec (counters A x) (budget x) then fits x budget A else false
  end.

(** What a charge would add to source x. *)
Definition price (A : Accounts) (v : vector) (e : R) (x : nat) : R := counters (charge A v e) x - counters A x.

(** Partitioning a table with vector v into k parts. *)
Definition divide (A : Accounts) (v : vector) (k : nat) : Accounts :=
  {| sources := sources A + k; counters := counters A; direct := direct A;
     partitions := {| first := sources A; parts := k; sensitivity := v; maximum := 0 |} :: partitions A |}.

Lemma fits_within n budget A : fits n budget A = true -> forall x, (x < n)%nat -> counters A x <= budget x.
Proof.
  induction n; simpl; intros H x Hx; [lia|]. destruct (Rle_dec (counters A n) (budget n)); [|discriminate].
  destruct (Nat.eq_dec x n); [subst; auto|apply IHn; auto; lia].
Qed.

Lemma largest_bounds C lo k m : m <= largest C lo k m /\ forall i, (i < k)%nat -> C (lo + i)%nat <= largest C lo k m.
Proof.
  induction k; simpl; split; try lra; try (intros; lia).
  - eapply Rle_trans; [apply IHk|apply Rmax_r].
  - intros i Hi. destruct (Nat.eq_dec i k); [subst; apply Rmax_l|].
    eapply Rle_trans; [apply IHk; lia|apply Rmax_r].
Qed.

Lemma largest_ext C D lo k m : (forall i, (i < k)%nat -> C (lo + i)%nat = D (lo + i)%nat) ->
  largest C lo k m = largest D lo k m.
Proof. induction k; simpl; intros H; auto. rewrite H, IHk; auto. Qed.

Lemma largest_reached C lo k m : (forall i, (i < k)%nat -> C (lo + i)%nat <= m) -> largest C lo k m = m.
Proof. induction k; simpl; intros H; auto. rewrite IHk, Rmax_right; auto. Qed.

Lemma largest_floor C lo k m : 0 <= m -> m <= largest C lo k 0 -> largest C lo k m = largest C lo k 0.
Proof.
  intros H0 Hm. assert (K : largest C lo k m = Rmax m (largest C lo k 0)).
  { clear Hm. induction k; simpl; [rewrite Rmax_left; lra|]. rewrite IHk, !Rmax_assoc, (Rmax_comm m). reflexivity. }
  rewrite K. apply Rmax_right, Hm.
Qed.

Section Potential.
  Variable roots : nat.

  (** ** The invariant of the accounts *)

  (** Partitions are numbered consecutively, and each splits a table that
      depends on older sources only. *)
  Fixpoint ordered (next : nat) (ps : list Partition) : Prop :=
    match ps with
    | [] => next = roots
    | p :: ps => next = (first p + parts p)%nat /\ (forall x, 0 <= sensitivity p x) /\
        (forall x, (first p <= x)%nat -> sensitivity p x = 0) /\ 0 <= maximum p /\ ordered (first p) ps
    end.

  (** (M): no part has been charged beyond the maximum of its partition. *)
  Definition capped (C : vector) (ps : list Partition) : Prop :=
    Forall (fun p => forall i, (i < parts p)%nat -> C (first p + i)%nat <= maximum p) ps.

  (** (G): with d the true distances of the sources in two runs, the parts of a
      partition are together no further apart than the table they come from. *)
  Definition geometric (d : vector) (ps : list Partition) : Prop :=
    Forall (fun p => segment (first p) (parts p) (fun _ => 1) d <= dot (first p) (sensitivity p) d) ps.

  (** ** The potential Ψ = Σ_s C_s d_s − Σ_π M_π (c_π · d) *)

  Fixpoint forwarded_cost (ps : list Partition) (d : vector) : R :=
    match ps with [] => 0 | p :: ps => maximum p * dot (first p) (sensitivity p) d + forwarded_cost ps d end.

  Definition potential (n : nat) (C d : vector) (ps : list Partition) : R := dot n C d - forwarded_cost ps d.

  Lemma segment_capped k lo C M d : (forall i, (i < k)%nat -> C (lo + i)%nat <= M) -> (forall x, 0 <= d x) ->
    segment lo k C d <= M * segment lo k (fun _ => 1) d.
  Proof.
    intros H Hd. induction k; simpl; [lra|]. rewrite Rmult_plus_distr_l, Rmult_1_l.
    apply Rplus_le_compat; auto. apply Rmult_le_compat_r; auto.
  Qed.

  (** Ψ is at most what the roots have paid: each partition's parts cost at most
      M_π times their total distance, which (G) bounds by M_π (c_π · d). *)
  Lemma potential_le_roots ps : forall n C d, ordered n ps -> capped C ps -> geometric d ps -> (forall x, 0 <= d x) ->
    potential n C d ps <= dot roots C d.
  Proof.
    induction ps as [|p ps IH]; intros n C d W Hc Hg Hd; unfold potential in *; simpl in *.
    - subst. lra.
    - destruct W as (-> & Hp & Hs & HM & W). inversion Hc; subst. inversion Hg; subst.
      specialize (IH _ _ _ W H2 H4 Hd). rewrite dot_split.
      assert (segment (first p) (parts p) C d <= maximum p * dot (first p) (sensitivity p) d).
      { eapply Rle_trans; [apply segment_capped; eauto|]. apply Rmult_le_compat_l; auto. }
      lra.
  Qed.

  (** Settling leaves Ψ as it is: what a partition forwards enters both sums. *)
  Lemma settle_correct ps : forall n C, ordered n ps -> let (qs, C') := settle ps C in
    ordered n qs /\ (forall x, (n <= x)%nat -> C' x = C x) /\ (forall x, C x <= C' x) /\ capped C' qs /\
    (forall d, potential n C' d qs = potential n C d ps) /\ (forall d, geometric d ps -> geometric d qs).
  Proof.
    induction ps as [|p ps IH]; intros n C W; simpl in *.
    - split; [exact W|]. split; [auto|]. split; [intros; lra|]. split; [constructor|]. split; [reflexivity|auto].
    - destruct W as (-> & Hp & Hs & HM & W).
      set (M := largest C (first p) (parts p) (maximum p)) in *.
      destruct (largest_bounds C (first p) (parts p) (maximum p)) as [G1 G2]. fold M in G1, G2.
      specialize (IH _ (fun x => C x + sensitivity p x * (M - maximum p)) W).
      destruct (settle ps (fun x => C x + sensitivity p x * (M - maximum p))) as [qs C'].
      destruct IH as (W' & Hn & Hge & Hc & HP & Hg).
      assert (Hsame : forall x, (first p <= x)%nat -> C' x = C x).
      { intros x Hx. rewrite Hn, Hs; auto. ring. }
      split; [|split; [|split; [|split; [|split]]]].
      + simpl. repeat split; auto. lra.
      + intros x Hx. apply Hsame. lia.
      + intros x. specialize (Hge x). specialize (Hp x). simpl in Hge.
        assert (0 <= sensitivity p x * (M - maximum p)) by (apply Rmult_le_pos; lra). lra.
      + constructor; auto. simpl. intros i Hi. rewrite Hsame; [auto|lia].
      + intros d. specialize (HP d). unfold potential in *. simpl. rewrite !dot_split.
        rewrite (segment_ext (first p) (parts p) C' C d d) by (intros; rewrite Hsame; [auto|lia]).
        rewrite dot_linear in HP. lra.
      + intros d Hd. inversion Hd; subst. constructor; [assumption|]. apply Hg. assumption.
  Qed.

  Lemma forwarded_cost_ext ps : forall n d e, ordered n ps -> (forall x, (x < n)%nat -> d x = e x) ->
    forwarded_cost ps d = forwarded_cost ps e.
  Proof.
    induction ps as [|p ps IH]; intros n d e W H; simpl in *; auto. destruct W as (-> & _ & _ & _ & W).
    rewrite (IH _ d e W) by (intros; apply H; lia).
    rewrite (dot_ext (first p) (sensitivity p) (sensitivity p) d e); auto. intros; split; auto. apply H. lia.
  Qed.

  Lemma geometric_ext ps : forall n d e, ordered n ps -> (forall x, (x < n)%nat -> d x = e x) -> geometric d ps ->
    geometric e ps.
  Proof.
    induction ps as [|p ps IH]; intros n d e W H Hg; [constructor|]. simpl in W. destruct W as (-> & _ & _ & _ & W).
    inversion Hg; subst.
    constructor; [|apply (IH (first p) d e W); [intros; apply H; lia|assumption]].
    rewrite <- (segment_ext (first p) (parts p) (fun _ => 1) (fun _ => 1) d e) by (intros; split; auto; apply H; lia).
    rewrite <- (dot_ext (first p) (sensitivity p) (sensitivity p) d e); auto. intros; split; auto. apply H; lia.
  Qed.

  Lemma ordered_ge ps : forall n, ordered n ps -> (roots <= n)%nat.
  Proof.
    induction ps as [|p ps IH]; simpl; intros n W; [lia|]. destruct W as (-> & _ & _ & _ & W). apply IH in W. lia.
  Qed.

  Definition Psi (A : Accounts) (d : vector) : R := potential (sources A) (counters A) d (partitions A).

  (** A charge raises Ψ by exactly e * (v · d), the most it can change the odds
      of an answer. *)
  Theorem charge_potential A v e d : ordered (sources A) (partitions A) ->
    Psi (charge A v e) d = Psi A d + e * dot (sources A) v d.
  Proof.
    intros W. unfold Psi, charge.
    pose proof (settle_correct (partitions A) (sources A) (fun x => counters A x + v x * e) W) as H.
    destruct (settle (partitions A) (fun x => counters A x + v x * e)) as [qs C']. simpl in *.
    destruct H as (_ & _ & _ & _ & HP & _). rewrite HP. unfold potential. rewrite dot_linear. ring.
  Qed.

  (** A new partition leaves Ψ as it is, whatever the distances of its parts. *)
  Theorem divide_potential A v k d d' : ordered (sources A) (partitions A) ->
    (forall x, (sources A <= x)%nat -> counters A x = 0) -> (forall x, (x < sources A)%nat -> d x = d' x) ->
    Psi (divide A v k) d' = Psi A d.
  Proof.
    intros W H0 Hd. unfold Psi, potential, divide. simpl.
    rewrite (dot_support (sources A + k) (sources A)) by (auto; lia).
    rewrite <- (forwarded_cost_ext (partitions A) (sources A) d d' W Hd).
    rewrite (dot_ext (sources A) (counters A) (counters A) d' d); [ring|]. intros; split; auto. symmetry; auto.
  Qed.

  (** ** The certificate

      What [Accounts.certificate] asserts at run time:
      C_s = direct(s) + Σ_π c_π(s) M_π, and M_π is the largest counter among
      the parts of π. *)

  Fixpoint forwarded (ps : list Partition) (x : nat) : R :=
    match ps with [] => 0 | p :: ps => sensitivity p x * maximum p + forwarded ps x end.

  Definition certificate (A : Accounts) : Prop :=
    (forall x, counters A x = direct A x + forwarded (partitions A) x) /\
    Forall (fun p => maximum p = largest (counters A) (first p) (parts p) 0) (partitions A).

  Lemma settle_forwarded ps : forall C, let (qs, C') := settle ps C in
    forall x, C' x = C x + forwarded qs x - forwarded ps x.
  Proof.
    induction ps as [|p ps IH]; intros C; simpl; [intros; ring|].
    set (M := largest C (first p) (parts p) (maximum p)).
    specialize (IH (fun x => C x + sensitivity p x * (M - maximum p))).
    destruct (settle ps (fun x => C x + sensitivity p x * (M - maximum p))) as [qs C'].
    intros x. simpl. rewrite IH. ring.
  Qed.

  Lemma largest_mono C D lo k m : (forall x, C x <= D x) -> largest C lo k m <= largest D lo k m.
  Proof.
    intros H. induction k; simpl; [lra|].
    apply Rmax_lub; [eapply Rle_trans; [apply H|apply Rmax_l]|eapply Rle_trans; [apply IHk|apply Rmax_r]].
  Qed.

  Lemma settle_maxima ps : forall n C, ordered n ps ->
    Forall (fun p => maximum p <= largest C (first p) (parts p) 0) ps -> let (qs, C') := settle ps C in
    Forall (fun p => maximum p = largest C' (first p) (parts p) 0) qs.
  Proof.
    induction ps as [|p ps IH]; intros n C W H; simpl; [constructor|].
    simpl in W. destruct W as (-> & Hp & Hs & HM & W). inversion H; subst.
    set (M := largest C (first p) (parts p) (maximum p)).
    assert (G : maximum p <= M) by apply largest_bounds.
    pose proof (settle_correct ps (first p) (fun x => C x + sensitivity p x * (M - maximum p)) W) as HS.
    specialize (IH (first p) (fun x => C x + sensitivity p x * (M - maximum p)) W).
    destruct (settle ps (fun x => C x + sensitivity p x * (M - maximum p))) as [qs C'].
    destruct HS as (_ & Hn & _). constructor.
    - simpl. unfold M. rewrite largest_floor by assumption. apply largest_ext. intros i _. rewrite Hn, Hs by lia.
      ring.
    - apply IH. eapply Forall_impl; [|exact H3]. intros q Hq. eapply Rle_trans; [exact Hq|].
      apply largest_mono. intros x. specialize (Hp x). simpl.
      assert (0 <= sensitivity p x * (M - maximum p)) by (apply Rmult_le_pos; lra). lra.
  Qed.

  Lemma certificate_opening : certificate (opening roots).
  Proof. split; [intros; simpl; ring|constructor]. Qed.

  Theorem certificate_charge A v e : ordered (sources A) (partitions A) -> (forall x, 0 <= v x) -> 0 <= e ->
    certificate A -> certificate (charge A v e).
  Proof.
    intros W Hv He [H1 H2]. unfold charge.
    pose proof (settle_forwarded (partitions A) (fun x => counters A x + v x * e)) as F.
    pose proof (settle_maxima (partitions A) (sources A) (fun x => counters A x + v x * e) W) as G.
    destruct (settle (partitions A) (fun x => counters A x + v x * e)) as [qs C']. split; simpl.
    - intros x. rewrite F, H1. ring.
    - apply G. eapply Forall_impl; [|exact H2]. intros p ->. apply largest_mono. intros x.
      assert (0 <= v x * e) by (apply Rmult_le_pos; auto). lra.
  Qed.

  Theorem certificate_divide A v k : (forall x, (sources A <= x)%nat -> counters A x = 0) ->
    certificate A -> certificate (divide A v k).
  Proof.
    intros H0 [H1 H2]. split; simpl.
    - intros x. rewrite H1. ring.
    - constructor; auto. simpl. symmetry. apply largest_reached. intros. rewrite H0; [lra|lia].
  Qed.

  (** ** A parallel query is a fresh partition, asked once in each part

      Charging every part of a fresh partition at e leaves the older sources
      with exactly the counters that one query at e on the whole table leaves:
      the first part pays, the others stay within the maximum. *)

  Lemma settle_ext ps : forall n C D, ordered n ps -> (forall x, (x < n)%nat -> C x = D x) ->
    fst (settle ps C) = fst (settle ps D) /\ forall x, (x < n)%nat -> snd (settle ps C) x = snd (settle ps D) x.
  Proof.
    induction ps as [|p ps IH]; intros n C D W H; simpl; [auto|].
    destruct W as (-> & Hp & Hs & HM & W).
    rewrite (largest_ext C D) by (intros; apply H; lia).
    set (M := largest D (first p) (parts p) (maximum p)).
    set (C1 := fun x => C x + sensitivity p x * (M - maximum p)).
    set (D1 := fun x => D x + sensitivity p x * (M - maximum p)).
    destruct (IH (first p) C1 D1 W) as [E1 E2]; [intros x Hx; unfold C1, D1; rewrite H by lia; ring|].
    pose proof (settle_correct ps (first p) C1 W) as SC. pose proof (settle_correct ps (first p) D1 W) as SD.
    destruct (settle ps C1) as [qs C'], (settle ps D1) as [rs D']. simpl in *. subst rs. split; auto.
    intros x Hx. destruct (le_lt_dec (first p) x) as [L|L]; auto.
    destruct SC as (_ & HC & _). destruct SD as (_ & HD & _). rewrite HC, HD by assumption.
    unfold C1, D1. rewrite H by assumption. reflexivity.
  Qed.

  Lemma settle_idle ps : forall n C, ordered n ps -> capped C ps ->
    fst (settle ps C) = ps /\ forall x, snd (settle ps C) x = C x.
  Proof.
    induction ps as [|p ps IH]; intros n C W H; simpl; [auto|].
    destruct W as (-> & Hp & Hs & HM & W). inversion H; subst.
    rewrite largest_reached by assumption.
    destruct (IH (first p) (fun x => C x + sensitivity p x * (maximum p - maximum p)) W) as [E1 E2].
    - eapply Forall_impl; [|exact H3]. simpl. intros q Hq i Hi. specialize (Hq i Hi). lra.
    - destruct (settle ps (fun x => C x + sensitivity p x * (maximum p - maximum p))) as [qs C']. simpl in *.
      subst qs.
      split; [destruct p; reflexivity|]. intros x. rewrite E2. ring.
  Qed.

  (** Charging the sources lo .. lo+k-1, one after the other. *)
  Fixpoint charge_parts (A : Accounts) (lo k : nat) (e : R) : Accounts :=
    match k with O => A | S j => charge (charge_parts A lo j e) (unit (lo + j)) e end.

  Theorem parallel_is_partition A v k e : ordered (sources A) (partitions A) -> capped (counters A) (partitions A) ->
    (forall x, (sources A <= x)%nat -> counters A x = 0) -> (forall x, 0 <= v x) ->
    (forall x, (sources A <= x)%nat -> v x = 0) ->
    0 <= e -> (0 < k)%nat ->
    forall x, (x < sources A)%nat -> counters (charge_parts (divide A v k) (sources A) k e) x =
      counters (charge A v e) x.
  Proof.
    intros W Hc H0 Hv Hv0 He Hk. set (n := sources A).
    pose proof (settle_correct (partitions A) n (fun x => counters A x + v x * e) W) as SC.
    unfold charge at 1. fold n.
    destruct (settle (partitions A) (fun x => counters A x + v x * e)) as [qs C'] eqn:ES. simpl.
    destruct SC as (W' & _ & _ & Hc' & _ & _).
    assert (J : forall j, (0 < j <= k)%nat -> let A' := charge_parts (divide A v k) n j e in
      partitions A' = {| first := n; parts := k; sensitivity := v; maximum := e |} :: qs /\
      (forall x, (x < n)%nat -> counters A' x = C' x) /\
      (forall i, (i < k)%nat -> counters A' (n + i)%nat = if Nat.ltb i j then e else 0)).
    { induction j as [|j IH]; [lia|]. intros Hj. cbn [charge_parts].
      destruct j as [|j].
      - clear IH. cbn [charge_parts]. unfold charge, divide.
        cbn [partitions counters settle first parts sensitivity maximum].
        assert (HL : largest (fun x => counters A x + unit (n + 0) x * e) n k 0 = e).
        { apply Rle_antisym.
          - assert (G : forall j, (j <= k)%nat -> largest (fun x => counters A x + unit (n + 0) x * e) n j 0 <= e).
            { induction j as [|j IH]; intros; simpl; [lra|]. apply Rmax_lub; [|apply IH; lia].
              rewrite H0 by (unfold n; lia).
              destruct (unit_nonneg (n + 0) (n + j)) as [P|P]; unfold unit in *;
                destruct (Nat.eqb (n + j) (n + 0)); lra. }
            apply G. lia.
          - destruct (largest_bounds (fun x => counters A x + unit (n + 0) x * e) n k 0) as [_ G].
            specialize (G O Hk). simpl in G. rewrite unit_self, H0 in G by (unfold n; lia). lra. }
        fold n. rewrite HL.
        set (C1 := fun x => counters A x + unit (n + 0) x * e + v x * (e - 0)).
        destruct (settle_ext (partitions A) n C1 (fun x => counters A x + v x * e) W) as [E1 E2].
        { intros x Hx. unfold C1. rewrite unit_other by lia. ring. }
        pose proof (settle_correct (partitions A) n C1 W) as S1.
        rewrite ES in E1, E2. destruct (settle (partitions A) C1) as [rs D']. simpl in *. subst rs.
        destruct S1 as (_ & HD & _). split; [reflexivity|]. split; [exact E2|].
        intros i Hi. rewrite HD by lia. unfold C1. rewrite H0, Hv0 by (unfold n; lia).
        unfold unit. destruct (Nat.eqb_spec (n + i) (n + 0)), (Nat.ltb_spec i 1); try lia; ring.
      - specialize (IH ltac:(lia)). cbv zeta in IH. set (A' := charge_parts (divide A v k) n (S j) e) in *.
        destruct IH as (P1 & P2 & P3). unfold charge. rewrite P1. cbn [settle first parts sensitivity maximum].
        rewrite largest_reached.
        2:{ intros i Hi. rewrite P3 by assumption. unfold unit.
            destruct (Nat.eqb_spec (n + i) (n + S j)), (Nat.ltb_spec i (S j)); try lia; lra. }
        set (C2 := fun x => counters A' x + unit (n + S j) x * e + v x * (e - e)).
        assert (HC2 : forall x, (x < n)%nat -> C2 x = C' x).
        { intros x Hx. unfold C2. rewrite unit_other by lia. rewrite P2 by assumption. ring. }
        destruct (settle_ext qs n C2 C' W' HC2) as [E1 E2]. destruct (settle_idle qs n C' W' Hc') as [E3 E4].
        pose proof (settle_correct qs n C2 W') as S2.
        destruct (settle qs C2) as [rs D']. simpl in *. rewrite E3 in E1. subst rs.
        destruct S2 as (_ & HD & _). split; [reflexivity|]. split.
        + intros x Hx. rewrite E2 by assumption. apply E4.
        + intros i Hi. rewrite HD by lia. unfold C2. rewrite P3, (Hv0 (n + i)%nat) by (unfold n; lia).
          unfold unit.
          destruct (Nat.eqb_spec (n + i) (n + S j)), (Nat.ltb_spec i (S j)), (Nat.ltb_spec i (S (S j)));
            try lia; ring. }
    intros x Hx. apply (J k); [lia|assumption].
  Qed.
End Potential.
